package dispatch

import (
	"context"
	"sync"
	"time"
)

// clock reads what goes on while the machine sleeps: the monotonic clock of package
// time stands still then, and the lease in the database does not. Whatever of the
// two says more time has passed is believed.
type clock func() time.Duration

// moment is an instant by both clocks.
type moment struct {
	at   time.Time
	boot time.Duration
}

func (c clock) now() moment { return moment{time.Now(), c()} }

func (c clock) until(m moment) time.Duration { return min(time.Until(m.at), m.boot-c()) }

func (c clock) since(m moment) time.Duration { return -c.until(m) }

func (m moment) add(d time.Duration) moment { return moment{m.at.Add(d), m.boot + d} }

// lookAgain is how often a limit looks at the clock that no timer follows: a call
// is at most so long over its time after the machine has slept.
const lookAgain = time.Second

// limit is a context whose deadline can be set anew: a delivery of several steps
// gets the time of one call for each.
type limit struct {
	context.Context
	cancel context.CancelCauseFunc
	clock  clock

	mu    sync.Mutex
	at    moment
	held  bool
	timer *time.Timer
}

var _ context.Context = (*limit)(nil)

func newLimit(parent context.Context, c clock, d time.Duration) *limit {
	ctx, cancel := context.WithCancelCause(parent)
	l := &limit{Context: ctx, cancel: cancel, clock: c, at: c.now().add(d)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(min(d, lookAgain), l.look)
	return l
}

// Deadline is the end of the current step's time.
func (l *limit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.at, true
}

// Err tells a passed deadline from a cancellation, as the contexts of the
// standard library do.
func (l *limit) Err() error {
	if l.Context.Err() == nil {
		return nil
	}
	return context.Cause(l.Context)
}

// look ends the context when its time is over by either clock.
func (l *limit) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return
	}
	left := l.clock.until(l.at)
	if left <= 0 {
		l.cancel(context.DeadlineExceeded)
		return
	}
	l.timer.Reset(min(left, lookAgain))
}

// open is asked before each request: a process that was stopped, or a machine that
// slept, goes on before any timer has fired.
func (l *limit) open() error {
	l.look()
	return l.Err()
}

// hold stops the clock while a step is being recorded.
func (l *limit) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
	l.timer.Stop()
}

// renew gives the next step d from now.
func (l *limit) renew(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.at = l.clock.now().add(d)
	l.timer.Reset(min(d, lookAgain))
}

// end cancels whatever still runs under the limit.
func (l *limit) end() {
	l.hold()
	l.cancel(context.Canceled)
}
