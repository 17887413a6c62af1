// Package conformance walks the model of test/proof/model at random and takes every
// step on the SQL functions too, under a clock of its own: both must answer the same
// and leave the same behind. It holds tests only.
package conformance
