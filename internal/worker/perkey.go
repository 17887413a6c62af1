package worker

import (
	"context"
	"sync"
)

// PerKey bounds the concurrent workers of each key, such as a workspace. No key waits for another. The zero value is
// ready; it is safe for concurrent use.
type PerKey struct {
	// Most is how many workers of one key may run; 0 means one.
	Most int

	mu   sync.Mutex
	busy map[string]int
	all  sync.WaitGroup
}

// Start runs work in its own goroutine, unless the key has Most workers already. A panic ends only this work.
func (p *PerKey) Start(ctx context.Context, key string, work func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[key] >= max(1, p.Most) {
		return
	}
	if p.busy == nil {
		p.busy = make(map[string]int)
	}
	p.busy[key]++
	p.all.Go(Task(ctx, func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.busy[key]--; p.busy[key] == 0 {
				delete(p.busy, key)
			}
		}()
		work()
	}))
}

// Wait returns when no worker is running. Start must not be called meanwhile.
func (p *PerKey) Wait() { p.all.Wait() }
