package results

import (
	"context"
	"log/slog"
	"sync"
)

// Told is a call and what it came to.
type Told struct {
	Call    Call
	Outcome Outcome
}

// commits records what calls came to: at once where nothing of the workspace is being
// recorded; what comes meanwhile goes together when that is done.
type commits struct {
	queue Queue
	log   *slog.Logger

	mu sync.Mutex
	// waiting has an entry for each workspace with a commit under way.
	waiting map[string][]*commit
}

type commit struct {
	told Told
	// done is closed when it was recorded, or could not be.
	done chan struct{}
}

// do returns when the outcome was recorded, or could not be.
func (c *commits) do(ctx context.Context, workspace string, told Told) {
	one := &commit{told, make(chan struct{})}
	c.mu.Lock()
	waiting, busy := c.waiting[workspace]
	if busy {
		c.waiting[workspace] = append(waiting, one)
	} else {
		c.waiting[workspace] = nil
		go c.serve(ctx, workspace, one)
	}
	c.mu.Unlock()
	<-one.done
}

// serve records one, then what came meanwhile, until nothing waits.
func (c *commits) serve(ctx context.Context, workspace string, one *commit) {
	for batch := []*commit{one}; len(batch) > 0; batch = c.next(workspace) {
		c.record(ctx, workspace, batch)
		for _, done := range batch {
			close(done.done)
		}
	}
}

// next takes what waits; nothing ends the turn.
func (c *commits) next(workspace string) []*commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting[workspace]
	if len(batch) == 0 {
		delete(c.waiting, workspace)
	} else {
		c.waiting[workspace] = nil
	}
	return batch
}

func (c *commits) record(ctx context.Context, workspace string, batch []*commit) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	told := make([]Told, len(batch))
	for i, one := range batch {
		told[i] = one.told
	}
	if err := c.queue.CommitWebhooks(ctx, workspace, told); err != nil {
		c.log.ErrorContext(ctx, "results.not_committed", "workspace_id", workspace, "calls", len(told), "error", err)
	}
}
