package properties

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever people, platforms, crashes and clocks do to a queue, each promise holds after
// every step, everything comes to its end once they stop, and verify finds nothing.
func TestQueueKeepsItsPromises(t *testing.T) {
	t.Parallel()
	h := open(t)
	commands := 0
	rapid.Check(t, func(t *rapid.T) {
		s := h.opens(t)
		act := func(f func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				f(t)
				commands++
				s.tick(t, 1000)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        s.look,
			"enqueue": act(s.enqueue), "enqueue more": act(s.enqueue), "again": act(s.again), "again more": act(s.again),
			"claim": act(s.claim), "work": act(s.work), "work more": act(s.work), "work on": act(s.work), "work late": act(s.work), "work again": act(s.work), "start": act(s.start), "start more": act(s.start),
			"commit": act(s.commit), "commit more": act(s.commit), "progress": act(s.progress),
			"extend": act(s.extend), "release": act(s.release), "crash": act(s.crash), "recover": act(s.recover),
			"pass": act(s.pass), "pass more": act(s.pass), "evening": act(s.evening), "operate": act(s.operate), "edit": act(s.edit),
			"requeue": act(s.requeue), "skip": act(s.skip), "resolve": act(s.resolve),
		})
		s.drain(t)
		for _, row := range s.rows(t, `select v.invariant, v.title, v.sample from autopost.verify($1) v where v.violations > 0`, s.workspace) {
			t.Fatalf("verify: %v", row)
		}
	})
	t.Logf("%d sequences, %d commands, 0 violations", h.shops, commands)
}
