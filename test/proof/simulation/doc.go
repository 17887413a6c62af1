// Package simulation is a test only: real dispatchers live through hours of seeded
// trouble on a clock of their own, over a database and a platform in memory. Whatever
// goes wrong is drawn from the seed and from what it happens to, never from the order in
// which it is asked, so that a seed that fails fails again.
//
// The database is written from the contract for this alone. test/proof/model knows more
// of people and less of time: it has no lengths of waits, and one channel.
package simulation
