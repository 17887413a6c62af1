// Package oracle proves the checker of invariants, autopost.verify: for each
// invariant a bug is planted, in the rows of a lively workspace or in one of the
// functions that keep them, and verify must name it; a sound workspace with the same
// history, and one that is being worked on, must give no finding at all. It holds
// tests only.
package oracle
