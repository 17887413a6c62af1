// Package service runs the background duties of a process together: it starts
// them in order, and when one fails or the process is asked to end it stops them
// in reverse order, so that what others build upon goes last.
package service

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

// DefaultStopWithin is the time that all duties together have to end.
const DefaultStopWithin = 30 * time.Second

// Duty works until ctx ends, then finishes what must not be left half done and
// returns.
type Duty interface {
	Run(ctx context.Context) error
}

// Func makes a Duty of a function.
type Func func(ctx context.Context) error

// Run implements Duty.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// Group is a set of duties. Its zero value is ready for use; Add all of them
// before Run, which may be called once.
type Group struct {
	// StopWithin bounds the end of all duties together; 0 means DefaultStopWithin.
	StopWithin time.Duration

	duties []*running
}

type running struct {
	name   string
	duty   Duty
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Add appends a duty. The name stands in errors.
func (g *Group) Add(name string, duty Duty) {
	g.duties = append(g.duties, &running{name: name, duty: duty, done: make(chan struct{})})
}

// Run works until ctx ends, a duty fails, or all have returned. It returns the
// failures, each with the name of its duty; a panic is one. Duties that do not end
// in time are named in the error and left behind.
func (g *Group) Run(ctx context.Context) error {
	ended := make(chan *running, len(g.duties))
	for _, r := range g.duties {
		// Not ctx itself: they end one after another, not all at once.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r.cancel = cancel
		go func() {
			defer cancel()
			r.run(own)
			ended <- r
		}()
	}
	for range g.duties {
		select {
		case r := <-ended:
			if r.err != nil {
				return g.stop()
			}
		case <-ctx.Done():
			return g.stop()
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
	err := r.duty.Run(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		r.err = fmt.Errorf("%s: %w", r.name, err)
	}
}

func (g *Group) stop() error {
	late := time.NewTimer(cmp.Or(g.StopWithin, DefaultStopWithin))
	defer late.Stop()
	inTime := true
	for _, r := range slices.Backward(g.duties) {
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
	for _, r := range g.duties {
		select {
		case <-r.done:
			failures = append(failures, r.err)
		default:
			left = append(left, r.name)
		}
	}
	if len(left) > 0 {
		failures = append(failures, fmt.Errorf("still running after %s: %s",
			cmp.Or(g.StopWithin, DefaultStopWithin), strings.Join(left, ", ")))
	}
	return errors.Join(failures...)
}
