// Package dispatch is the second stage: it claims due deliveries, calls the
// platform through an adapter and commits what the call came to.
//
// It decides nothing. Which delivery is due, when its slot is, whether its call
// may begin and what becomes of its outcome is answered by the database; this
// package keeps the clock, the number of calls at once, and the promise that
// every claim ends in a commit, a hand-back or an expired lease.
//
//	claim ─► wait for the slot ─► sender ─► credential ─► start_call ─► wait ─► adapter ─► commit
//	             │ stop asked: handed back      │ refused: committed       │ not applied: handed back by SQL
//
// What is to be done to posts that were sent goes a shorter way, beside it (acts.go):
// claim ─► credential ─► start_act ─► wait for the slot ─► sender ─► adapter ─► commit.
//
// Read dispatcher.go (rounds), then send.go (one delivery), then commit.go.
package dispatch
