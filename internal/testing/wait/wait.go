// Package wait bounds the waits of tests.
//
// A wait ends when its condition holds. The bound only turns a hang into a failure, so one
// bound serves every test on every machine; a test never sets its own.
package wait

import (
	"testing"
	"time"
)

// Bound is how long a test waits before it reports a hang. It is shorter than the five minutes
// after which a stage polls without a wake-up: a lost wake-up fails the test that waits for it.
const Bound = 4 * time.Minute

// The time between two evaluations of a condition grows from shortest to longest, so that long
// waits leave the processor to the programs under test.
const (
	shortest = 10 * time.Millisecond
	longest  = 100 * time.Millisecond
)

// Until waits until done returns true and fails the test after Bound. It calls done on the
// goroutine of the test. The failure shows what was awaited and the text of each detail.
func Until(t testing.TB, what string, done func() bool, details ...func() string) {
	t.Helper()
	bound := time.NewTimer(Bound)
	defer bound.Stop()
	interval := shortest
	pause := time.NewTimer(interval)
	defer pause.Stop()
	for !done() {
		select {
		case <-pause.C:
			interval = min(interval*5/4, longest)
			pause.Reset(interval)
		case <-bound.C:
			text := ""
			for _, detail := range details {
				text += "\n" + detail()
			}
			t.Fatalf("not within %s: %s%s", Bound, what, text)
		}
	}
}

// Closed waits until the channel is closed or sends a value, and reports whether that happened within Bound.
func Closed[T any](channel <-chan T) bool {
	bound := time.NewTimer(Bound)
	defer bound.Stop()
	select {
	case <-channel:
		return true
	case <-bound.C:
		return false
	}
}
