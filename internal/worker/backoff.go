package worker

import (
	"context"
	"time"
)

// Backoff is a pause that doubles from Least up to Most.
type Backoff struct{ Least, Most time.Duration }

// Pause returns the pause after n failures in a row, counted from 0.
func (b Backoff) Pause(n int) time.Duration {
	return min(b.Most, b.Least<<min(n, 16))
}

// Sleep waits for d. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Wake leaves a wake-up in a channel that holds one, unless one is there. A nil channel is ignored.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
