package dispatch

import (
	"context"
	"sync"
	"time"
)

// limit is a context whose deadline can be set anew: a delivery of several steps
// gets the time of one call for each. It runs on the monotonic clock.
type limit struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	at    time.Time
	timer *time.Timer
}

var _ context.Context = (*limit)(nil)

func newLimit(parent context.Context, d time.Duration) *limit {
	ctx, cancel := context.WithCancelCause(parent)
	l := &limit{Context: ctx, cancel: cancel, at: time.Now().Add(d)}
	l.timer = time.AfterFunc(d, l.expire)
	return l
}

// Deadline is the end of the current step's time.
func (l *limit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, true
}

// Err tells a passed deadline from a cancellation, as the contexts of the
// standard library do.
func (l *limit) Err() error {
	if l.Context.Err() == nil {
		return nil
	}
	return context.Cause(l.Context)
}

func (l *limit) expire() { l.cancel(context.DeadlineExceeded) }

// hold stops the clock while a step is being recorded.
func (l *limit) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
}

// renew gives the next step d from now.
func (l *limit) renew(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now().Add(d)
	l.timer.Reset(d)
}

// end cancels whatever still runs under the limit.
func (l *limit) end() {
	l.hold()
	l.cancel(context.Canceled)
}
