package service

import "sync"

// Turns gives each workspace at most one turn at a time, without making the
// turns of others wait for it. The zero value is ready; it is safe for
// concurrent use.
type Turns struct {
	mu   sync.Mutex
	busy map[string]bool
	all  sync.WaitGroup
}

// Start runs turn in its own goroutine, unless the workspace's last one is still running.
func (t *Turns) Start(workspace string, turn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[workspace] {
		return
	}
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	t.busy[workspace] = true
	t.all.Go(func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.busy, workspace)
		}()
		turn()
	})
}

// Wait returns when no turn is running. Start must not be called meanwhile.
func (t *Turns) Wait() { t.all.Wait() }
