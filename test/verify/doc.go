// Package verify tests the invariants check, autopost.verify. For each invariant a test plants a bug
// in the rows of a busy workspace or in a function, and verify must report it. A sound workspace
// with the same history, and one with a running queue, must give no finding.
package verify
