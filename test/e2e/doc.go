// Package e2e holds the whole-house tests: what goes in through a door of the
// real binary comes out at the simulated platforms, once, in time, or is refused
// with a reason.
package e2e
