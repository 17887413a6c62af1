package worker

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Panic is the error of work that panicked. Its text has no value of the caller, because that may hold a secret.
type Panic struct {
	reason string
	// Stack is that of the goroutine.
	Stack string
}

func (p *Panic) Error() string { return "panic: " + p.reason }

// newPanic describes a recovered value: a runtime error by its text, any other value by its type.
func newPanic(value any) *Panic {
	reason := fmt.Sprintf("%T", value)
	if failure, ok := value.(runtime.Error); ok {
		reason = failure.Error()
	}
	return &Panic{reason: reason, Stack: string(debug.Stack())}
}

// reporter is the context key of the function that receives panics.
type reporter struct{}

// ReportPanics makes the panics of contained work under the context reach report.
func ReportPanics(ctx context.Context, report func(*Panic)) context.Context {
	return context.WithValue(ctx, reporter{}, report)
}

// Contained makes work return a *Panic instead of ending the process. The Supervisor that runs the stage of ctx
// receives it, too. Without a Supervisor, or ReportPanics, the panic continues.
func Contained(ctx context.Context, work func() error) func() error {
	return func() (err error) {
		report, supervised := ctx.Value(reporter{}).(func(*Panic))
		if !supervised {
			return work()
		}
		defer func() {
			if value := recover(); value != nil {
				failure := newPanic(value)
				report(failure)
				err = failure
			}
		}()
		return work()
	}
}

// Task is Contained for a goroutine without a result.
func Task(ctx context.Context, work func()) func() {
	contained := Contained(ctx, func() error {
		work()
		return nil
	})
	return func() { _ = contained() } // the Supervisor has it
}
