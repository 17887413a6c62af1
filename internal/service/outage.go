package service

import (
	"context"
	"log/slog"
	"sync"
)

// Outage turns the repeated failure of a loop into one line when it begins and
// one when it is over. The zero value is ready; it is safe for concurrent use.
type Outage struct {
	mu   sync.Mutex
	down bool
}

// Report takes the result of one round of duty.
func (o *Outage) Report(ctx context.Context, log *slog.Logger, duty string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil && !o.down:
		o.down = true
		log.ErrorContext(ctx, duty+".unavailable", "error", err)
	case err == nil && o.down:
		o.down = false
		log.InfoContext(ctx, duty+".recovered")
	}
}
