package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// FairShare divides a capacity among keys. A key may hold at most weight times what is free, so some capacity
// always stays free for other keys. One key alone gets weight/(weight+1) of the capacity: half of it with weight 1.
// Make it with NewFairShare; it is safe for concurrent use.
type FairShare[K comparable] struct {
	capacity int
	weight   func(K) int

	mu    sync.Mutex
	taken int
	held  map[K]int
	freed chan struct{} // closed on the next release; nil if nothing waits
}

// NewFairShare makes a FairShare. A nil weight gives every key the weight 1.
func NewFairShare[K comparable](capacity int, weight func(K) int) *FairShare[K] {
	if weight == nil {
		weight = func(K) int { return 1 }
	}
	return &FairShare[K]{capacity: capacity, weight: weight, held: map[K]int{}}
}

// Taken returns how much capacity is in use.
func (f *FairShare[K]) Taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// Keys returns the keys that hold something, in no order.
func (f *FairShare[K]) Keys() []K {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.held))
}

// Left returns how much more a key may take.
func (f *FairShare[K]) Left(key K) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left(key)
}

// left expects mu to be held. The key may take n while held+n <= weight*(free-n+1), which leaves at least one unit
// free for the next key.
func (f *FairShare[K]) left(key K) int {
	free, weight := f.capacity-f.taken, f.weight(key)
	return max(0, min(free, (weight*free-f.held[key]+weight)/(weight+1)))
}

// Take takes n units that all keys share. It does not check Left.
func (f *FairShare[K]) Take(n int, keys ...K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(n, keys)
}

// Release returns n units that Take or Acquire took for the same keys.
func (f *FairShare[K]) Release(n int, keys ...K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(-n, keys)
	if f.freed != nil {
		close(f.freed)
		f.freed = nil
	}
}

// Acquire waits until each key may take one unit, and takes it. The error is the cause of ctx.
func (f *FairShare[K]) Acquire(ctx context.Context, keys ...K) error {
	for {
		freed, ok := f.try(keys)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try takes one unit, or returns a channel that is closed on the next release.
func (f *FairShare[K]) try(keys []K) (freed <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(keys, func(key K) bool { return f.left(key) == 0 }) {
		if f.freed == nil {
			f.freed = make(chan struct{})
		}
		return f.freed, false
	}
	f.add(1, keys)
	return nil, true
}

// add expects mu to be held.
func (f *FairShare[K]) add(n int, keys []K) {
	f.taken += n
	for _, key := range keys {
		if f.held[key] += n; f.held[key] == 0 {
			delete(f.held, key)
		}
	}
}
