// Package autopost is the vocabulary of the house: what a post, a channel, a
// delivery and an outcome are called, and what an adapter must be able to say.
//
// It holds words, not behaviour: every invariant lives in PostgreSQL (db/), Go
// moves, adapters speak. The package imports the standard library only.
package autopost
