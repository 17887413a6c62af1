// Package adaptertest is the conformance suite of adapters. It runs an adapter against the simulator of
// its platform and checks its requests, its error classes, and that it never sends twice, guesses an
// outcome, or reveals its secret.
//
// The verdict comes from the simulator's log, not from the adapter's results.
package adaptertest
