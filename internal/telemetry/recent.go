package telemetry

import (
	"context"
	"sync"
	"time"
)

// recent keeps the rows of the last read of the database for the scrapes of queueMaxAge.
type recent[T any] struct {
	// read reads the rows; nil for none.
	read func(ctx context.Context) ([]T, error)

	mu    sync.Mutex
	asked time.Time
	lines []T
	err   error
}

// get reads again if the last read is too old, and returns the time of the read. Concurrent scrapes share one read.
func (r *recent[T]) get() ([]T, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil || !r.asked.IsZero() && time.Since(r.asked) < queueMaxAge {
		return r.lines, r.asked, r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
	defer cancel()
	r.lines, r.err = r.read(ctx)
	r.asked = time.Now()
	return r.lines, r.asked, r.err
}
