package service

import "sync"

// Turns gives each workspace a bounded number of turns at a time, without making
// the turns of others wait for it. The zero value is ready; it is safe for
// concurrent use.
type Turns struct {
	// Most is how many turns of one workspace may run; 0 means one.
	Most int

	mu   sync.Mutex
	busy map[string]int
	all  sync.WaitGroup
}

// Start runs turn in its own goroutine, unless as many of the workspace as may are running.
func (t *Turns) Start(workspace string, turn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[workspace] >= max(1, t.Most) {
		return
	}
	if t.busy == nil {
		t.busy = make(map[string]int)
	}
	t.busy[workspace]++
	t.all.Go(func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.busy[workspace]--; t.busy[workspace] == 0 {
				delete(t.busy, workspace)
			}
		}()
		turn()
	})
}

// Wait returns when no turn is running. Start must not be called meanwhile.
func (t *Turns) Wait() { t.all.Wait() }
