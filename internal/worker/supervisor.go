package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// DefaultStopWithin is the default of Supervisor.StopWithin.
const DefaultStopWithin = 30 * time.Second

// Runner works until ctx ends, completes what must not be interrupted, and returns.
type Runner interface {
	Run(ctx context.Context) error
}

// Func makes a Runner of a function.
type Func func(ctx context.Context) error

// Run implements Runner.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// Supervisor runs several runners. If one fails or ctx ends, it stops all in reverse order, so that a runner stops before
// those that it depends on. The zero value is ready for use. Add all runners before Run, which may be called once.
type Supervisor struct {
	// StopWithin bounds the time to stop all runners; 0 means DefaultStopWithin.
	StopWithin time.Duration

	runners []*running
}

type running struct {
	name   string
	runner Runner
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Add appends a runner. Errors contain its name.
func (s *Supervisor) Add(name string, runner Runner) {
	s.runners = append(s.runners, &running{name: name, runner: runner, done: make(chan struct{})})
}

// Run returns when ctx ends, a runner fails, or all have returned. It returns the failures with the names of their
// runners; a panic is a failure. The error names runners that do not stop in time; they are abandoned.
func (s *Supervisor) Run(ctx context.Context) error {
	ended := make(chan *running, len(s.runners))
	for _, r := range s.runners {
		// Not ctx itself: runners stop one after another, not all at once.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r.cancel = cancel
		go func() {
			defer cancel()
			r.run(own)
			ended <- r
		}()
	}
	for range s.runners {
		select {
		case r := <-ended:
			if r.err != nil {
				return s.stop()
			}
		case <-ctx.Done():
			return s.stop()
		}
	}
	return nil
}

func (r *running) run(ctx context.Context) {
	defer close(r.done)
	defer func() {
		if panicked := recover(); panicked != nil {
			r.err = fmt.Errorf("%s: panic: %v\n%s", r.name, panicked, debug.Stack())
		}
	}()
	err := r.runner.Run(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		r.err = fmt.Errorf("%s: %w", r.name, err)
	}
}

func (s *Supervisor) stop() error {
	late := time.NewTimer(cmp.Or(s.StopWithin, DefaultStopWithin))
	defer late.Stop()
	inTime := true
	for _, r := range slices.Backward(s.runners) {
		r.cancel()
		if !inTime {
			continue
		}
		select {
		case <-r.done:
		case <-late.C:
			inTime = false
		}
	}
	var failures []error
	var left []string
	for _, r := range s.runners {
		select {
		case <-r.done:
			failures = append(failures, r.err)
		default:
			left = append(left, r.name)
		}
	}
	if len(left) > 0 {
		failures = append(failures, fmt.Errorf("still running after %s: %s",
			cmp.Or(s.StopWithin, DefaultStopWithin), strings.Join(left, ", ")))
	}
	return errors.Join(failures...)
}
