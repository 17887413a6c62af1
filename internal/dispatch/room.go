package dispatch

import (
	"context"
	"sync"
)

// place is where a delivery stands while this daemon has it.
type place int

const (
	waiting  place = iota // for its slot, at most a second ahead
	calling               // has a sender, or is about to get one
	settling              // its outcome is being committed
	places
)

// room counts the deliveries in hand, so that no more are claimed than can begin
// soon, and hands out the senders.
type room struct {
	senders chan struct{}
	// freed holds one hint that there may be room, or a gate re-armed, since it was last read.
	freed chan struct{}

	mu sync.Mutex
	at [places]int
}

func newRoom(senders int) *room {
	return &room{senders: make(chan struct{}, senders), freed: make(chan struct{}, 1)}
}

// free is how many deliveries may be claimed now. Those that wait for their slot
// hold no sender, yet all in hand together are bounded by twice the senders.
func (r *room) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	inHand := r.at[waiting] + r.at[calling] + r.at[settling]
	return max(0, min(cap(r.senders)-r.at[calling], 2*cap(r.senders)-inHand))
}

func (r *room) enter(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[p]++
}

func (r *room) move(from, to place) {
	r.mu.Lock()
	r.at[from]--
	r.at[to]++
	r.mu.Unlock()
	r.hint()
}

func (r *room) leave(p place) {
	r.mu.Lock()
	r.at[p]--
	r.mu.Unlock()
	r.hint()
}

func (r *room) hint() {
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// sender waits for permission to make a call; false when ctx ended first.
func (r *room) sender(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case r.senders <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *room) done() { <-r.senders }
