package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// those that it depends on. A runner that panics does not stop the others: it runs again after a growing pause. The
// zero value is ready for use. Add all runners before Run, which may be called once.
type Supervisor struct {
	// Panicked receives each panic of a runner and of its tasks (see Contained). It may be nil.
	Panicked func(ctx context.Context, runner string, failure *Panic)
	// StopWithin bounds the time to stop all runners; 0 means DefaultStopWithin.
	StopWithin time.Duration

	runners []*running
}

// restartBackoff is the pause before a runner that panicked runs again. A runner that worked for longer than Most starts
// with Least.
var restartBackoff = Backoff{Least: time.Second, Most: time.Minute}

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
// runners. The error names runners that do not stop in time; they are abandoned.
func (s *Supervisor) Run(ctx context.Context) error {
	ended := make(chan *running, len(s.runners))
	for _, r := range s.runners {
		// Not ctx itself: runners stop one after another, not all at once.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r.cancel = cancel
		go func() {
			defer cancel()
			r.run(s.supervised(own, r.name))
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

// supervised makes the panics of a runner reach Panicked.
func (s *Supervisor) supervised(ctx context.Context, name string) context.Context {
	return ReportPanics(ctx, func(failure *Panic) {
		if s.Panicked != nil {
			s.Panicked(context.WithoutCancel(ctx), name, failure)
		}
	})
}

func (r *running) run(ctx context.Context) {
	defer close(r.done)
	for panics := 0; ; panics++ {
		began := time.Now()
		err := Contained(ctx, func() error { return r.runner.Run(ctx) })()
		if !errors.As(err, new(*Panic)) {
			if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
				r.err = fmt.Errorf("%s: %w", r.name, err)
			}
			return
		}
		if time.Since(began) > restartBackoff.Most {
			panics = 0
		}
		if !Sleep(ctx, restartBackoff.Pause(panics)) {
			return
		}
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
