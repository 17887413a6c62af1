package dispatch

import (
	"context"
	"sync"
	"time"
)

// clock reads a clock that runs while the machine sleeps. The monotonic clock of package time stops then, but the
// lease in the database goes on. Of both clocks, the one that measured more time counts.
type clock func() time.Duration

// instant is a point in time on both clocks.
type instant struct {
	at   time.Time
	boot time.Duration
}

func (c clock) now() instant { return instant{time.Now(), c()} }

func (c clock) until(i instant) time.Duration { return min(time.Until(i.at), i.boot-c()) }

func (c clock) since(i instant) time.Duration { return -c.until(i) }

func (i instant) add(d time.Duration) instant { return instant{i.at.Add(d), i.boot + d} }

// checkInterval is how often a deadline reads the clock that no timer follows. After the machine slept, a call
// exceeds its time by at most this.
const checkInterval = time.Second

// deadline is a context with a deadline that can move: each step of a delivery gets the time of one call.
type deadline struct {
	context.Context
	cancel context.CancelCauseFunc
	clock  clock

	mu     sync.Mutex
	at     instant
	paused bool
	timer  *time.Timer
}

var _ context.Context = (*deadline)(nil)

func newDeadline(parent context.Context, c clock, d time.Duration) *deadline {
	ctx, cancel := context.WithCancelCause(parent)
	l := &deadline{Context: ctx, cancel: cancel, clock: c, at: c.now().add(d)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(min(d, checkInterval), l.check)
	return l
}

// Deadline implements context.Context: it returns the deadline of the current step.
func (l *deadline) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.at, true
}

// Err distinguishes a passed deadline from a cancellation, like the contexts of the standard library.
func (l *deadline) Err() error {
	if l.Context.Err() == nil {
		return nil
	}
	return context.Cause(l.Context)
}

// check ends the context if its time is over on either clock.
func (l *deadline) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused {
		return
	}
	left := l.clock.until(l.at)
	if left <= 0 {
		l.cancel(context.DeadlineExceeded)
		return
	}
	l.timer.Reset(min(left, checkInterval))
}

// allow runs before each request: a process that was stopped, or a machine that slept, resumes before its timers
// fire.
func (l *deadline) allow() error {
	l.check()
	return l.Err()
}

// pause stops the clock while a step is recorded.
func (l *deadline) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = true
	l.timer.Stop()
}

// renew gives the next step d from now.
func (l *deadline) renew(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = false
	l.at = l.clock.now().add(d)
	l.timer.Reset(min(d, checkInterval))
}

// end cancels everything that still runs under the deadline.
func (l *deadline) end() {
	l.pause()
	l.cancel(context.Canceled)
}

// during pauses the clock while do runs, which renews the deadline. An error of do ends the deadline.
func (l *deadline) during(do func() error) error {
	l.pause()
	if err := do(); err != nil {
		l.end()
		return err
	}
	return nil
}
