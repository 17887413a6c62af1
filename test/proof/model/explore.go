package model

import (
	"fmt"
	"strings"
)

// Report of an exploration.
type Report struct {
	States, Transitions int
	// Copies is the largest number of copies of one delivery; Above counts the states
	// in which one has more than its bound.
	Copies uint8
	// AfterTheEnd counts requests for a delivery that was final already. Only late calls may make them.
	AfterTheEnd int
	// Longest is the longest run of steps without a fault and with no action of a person but resume. Each such run
	// ends with all deliveries final or held.
	Longest int
	// Violations by rule, each with the shortest path to it.
	Violations map[string]string
}

func (r Report) String() string {
	return fmt.Sprintf("%d states, %d transitions, at most %d copies, %d requests after the end, quiet runs of at most %d steps, %d violations",
		r.States, r.Transitions, r.Copies, r.AfterTheEnd, r.Longest, len(r.Violations))
}

// explorer visits breadth first, so that the way to a violation is a shortest one.
type explorer struct {
	Config
	Report
	index  map[State]int32
	states []State
	parent []int32
	by     []Action
	// quiet are the steps of progress from each state.
	quiet [][]int32
}

// Explore visits every state that can be reached.
func (c Config) Explore() Report {
	x := &explorer{Config: c, index: map[State]int32{}}
	x.Violations = map[string]string{}
	x.visit(c.Start().canonical(), -1, Action{})
	var actions []Action
	for at := int32(0); int(at) < len(x.states); at++ {
		before := x.states[at]
		actions = c.Enabled(&before, actions[:0])
		for _, a := range actions {
			x.Transitions++
			after, answer := c.Step(before, a)
			x.judge(at, a, &before, &after, answer)
			to := x.visit(after.canonical(), at, a)
			if to != at && c.progress(a) {
				x.quiet[at] = append(x.quiet[at], to)
			}
		}
	}
	x.States = len(x.states)
	x.ends()
	return x.Report
}

// progress reports whether a step happens automatically when nothing goes wrong. A paused or
// disabled channel is resumed then.
func (c Config) progress(a Action) bool { return a.Kind < ClaimLost || a.Kind == Resume }

func (x *explorer) visit(s State, from int32, by Action) int32 {
	at, seen := x.index[s]
	if seen {
		return at
	}
	at = int32(len(x.states))
	x.index[s] = at
	x.states, x.parent, x.by, x.quiet = append(x.states, s), append(x.parent, from), append(x.by, by), append(x.quiet, nil)
	x.look(at)
	return at
}

func (x *explorer) violated(what string, at int32, a *Action) {
	if _, known := x.Violations[what]; known {
		return
	}
	var steps []string
	if a != nil {
		steps = append(steps, a.String())
	}
	for n := at; x.parent[n] >= 0; n = x.parent[n] {
		steps = append(steps, x.by[n].String())
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%d. %s\n", len(steps)-i, steps[i])
	}
	fmt.Fprintf(&b, "%v", x.states[at])
	x.Violations[what] = b.String()
}

// look checks one state.
func (x *explorer) look(at int32) {
	s := &x.states[at]
	if s.inFlight() > x.MaxParallel {
		x.violated("more in flight than max_parallel", at, nil)
	}
	for i := range x.Deliveries {
		d := s.Deliveries[i]
		x.Copies = max(x.Copies, d.Copies)
		switch {
		case d.Copies > x.Bound(d):
			x.violated("more copies than the policy allows", at, nil)
		case d.Copies > 1+d.Unknown:
			x.violated("a copy that follows no recorded unknown outcome", at, nil)
		case d.Status == Sent && d.Copies == 0:
			x.violated("sent, but the platform does not have it", at, nil)
		case d.Ended() && d.Status != Sent && d.Copies > 0 && d.Unknown == 0 && !x.Late:
			x.violated("ended without a record of a possible copy", at, nil)
		case d.Attempt > x.MaxAttempts+d.Granted:
			x.violated("more attempts than granted", at, nil)
		}
	}
}

// judge checks a step.
func (x *explorer) judge(at int32, a Action, before, after *State, answer Answer) {
	for i := range x.Deliveries {
		was, is := before.Deliveries[i], after.Deliveries[i]
		if was.Status.Final() && is.Status != was.Status && a.Kind != Requeue {
			x.violated("a final status changes without an operator", at, &a)
		}
		if is.Started && !was.Started && before.shut() {
			x.violated("a call begins while its channel is shut", at, &a)
		}
		if is.Attempt < was.Attempt || is.Unknown < was.Unknown {
			x.violated("a counter falls", at, &a)
		}
	}
	switch a.Kind {
	case Send:
		d, w := before.Deliveries[a.Delivery], before.Workers[a.Worker]
		if a.Outcome == Refused { // perhaps nothing left
			return
		}
		if d.Status.Final() {
			x.AfterTheEnd++
		}
		if (!d.holds(w) || !d.Started) && !x.Late {
			x.violated("a request without a claim and a recorded call", at, &a)
		}
	case Commit, CommitLost:
		if !answer.Applied || answer.Repeated {
			x.unmoved(at, a, before, after)
		}
	}
}

// unmoved checks that a refused or repeated commit changes nothing.
func (x *explorer) unmoved(at int32, a Action, before, after *State) {
	if before.Deliveries != after.Deliveries || before.Channel != after.Channel {
		x.violated("a stale or repeated commit changes something", at, &a)
	}
}

// ends follows the steps of progress depth first. A circle is a run that never ends; without a next step all deliveries
// must have ended.
func (x *explorer) ends() {
	const open, unseen = -1, 0
	rank := make([]int32, len(x.states)) // longest run from here, plus one
	var stack []int32
	for root := range x.states {
		stack = append(stack, int32(root))
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			if rank[at] > unseen {
				stack = stack[:len(stack)-1]
				continue
			}
			pending, longest := false, int32(0)
			for _, to := range x.quiet[at] {
				switch rank[to] {
				case open:
					x.violated("a run that never ends", to, nil)
				case unseen:
					stack, pending = append(stack, to), true
				default:
					longest = max(longest, rank[to])
				}
			}
			if pending {
				rank[at] = open
				continue
			}
			rank[at] = longest + 1
			x.Longest = max(x.Longest, int(longest))
			x.over(at)
			stack = stack[:len(stack)-1]
		}
	}
}

func (x *explorer) over(at int32) {
	if len(x.quiet[at]) > 0 {
		return
	}
	s := &x.states[at]
	for i := range x.Deliveries {
		if !s.Deliveries[i].Ended() {
			x.violated("a delivery that nothing brings to its end", at, nil)
		}
	}
}
