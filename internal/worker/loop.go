package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Loop polls periodically: at once, after each pause, and after each wake-up. A wake-up during a poll ends the
// next pause, so none is lost. Tests run a Loop on the fake clock of testing/synctest, or call its Poll directly.
//
//	Poll ──► pause: next, or Interval; after an error Backoff ──► Poll …
//	            └── ends early on Wake or Freed
//
// A panic of Poll counts as an error, so the work of earlier polls continues.
type Loop struct {
	// Poll does one pass. It returns the pause until the next one; 0 means Interval. After an error the pause is
	// that of Backoff. Required.
	Poll func(ctx context.Context) (next time.Duration, err error)
	// Interval is the pause between two polls if nothing wakes the loop. Required.
	Interval time.Duration
	// Delay is the pause before the first poll; 0 by default.
	Delay time.Duration
	// Backoff bounds the pauses after errors; 1 s up to Interval by default.
	Backoff Backoff
	// Wake ends a pause: there is work. It may be nil, and it may be closed.
	Wake <-chan struct{}
	// Freed ends a pause: capacity is free again. It may be nil.
	Freed <-chan struct{}
	// Log receives NAME.unavailable when polls start to fail and NAME.recovered when they succeed again. A Loop
	// without a Log reports nothing.
	Log *slog.Logger
	// Name is the prefix of the two log events.
	Name string
}

// Run polls until ctx ends. It always returns nil, so that a Loop is a Runner.
func (l Loop) Run(ctx context.Context) error {
	backoff := Backoff{Least: cmp.Or(l.Backoff.Least, min(time.Second, l.Interval)), Most: cmp.Or(l.Backoff.Most, l.Interval)}
	var outage Outage
	wake, pause := l.Wake, l.Delay
	for failures := 0; ; {
		if !l.wait(ctx, pause, &wake) {
			return nil
		}
		var next time.Duration
		err := Contained(ctx, func() (err error) {
			next, err = l.Poll(ctx)
			return err
		})()
		if l.Log != nil {
			outage.Report(ctx, l.Log, l.Name, err)
		}
		if err != nil {
			pause = backoff.Pause(failures)
			failures++
			continue
		}
		failures, pause = 0, cmp.Or(next, l.Interval)
	}
}

// wait ends after pause or with a wake-up. It returns false if ctx ended.
func (l Loop) wait(ctx context.Context, pause time.Duration, wake *<-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	if pause <= 0 {
		return true
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-l.Freed:
			return true
		case _, open := <-*wake:
			if open {
				return true
			}
			*wake = nil // a closed channel would wake the loop without end
		}
	}
}
