package worker

import (
	"context"
	"log/slog"
	"sync"
)

// Outage logs the first of repeated failures, and their end. The zero value is ready; it is safe for concurrent use.
type Outage struct {
	mu   sync.Mutex
	down bool
}

// Report takes the result of one poll. name is the prefix of the log events.
func (o *Outage) Report(ctx context.Context, log *slog.Logger, name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil && !o.down:
		o.down = true
		log.ErrorContext(ctx, name+".unavailable", "error", err)
	case err == nil && o.down:
		o.down = false
		log.InfoContext(ctx, name+".recovered")
	}
}
