// Package adaptertest is the suite that every adapter must pass against the
// simulator of its platform: what it sends, what it makes of every failure, and what
// it must never do: send twice, guess, or tell its secret.
//
// The verdict comes from the receiver's log, not from the adapter's word.
package adaptertest
