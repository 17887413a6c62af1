package mutation

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// judge stands in for a test, and keeps what it has to complain of.
type judge struct {
	testing.TB

	mu         sync.Mutex
	complaints []string
	cleanups   []func()
}

// judged runs a scenario to its end and returns its complaints; none is a pass.
func judged(t testing.TB, scenario func(testing.TB)) []string {
	j := &judge{TB: t}
	inOrder := func(f func()) {
		done := make(chan struct{})
		go func() { // FailNow ends the goroutine
			defer close(done)
			f()
		}()
		<-done
	}
	inOrder(func() { scenario(j) })
	for len(j.cleanups) > 0 {
		last := len(j.cleanups) - 1
		f := j.cleanups[last]
		j.cleanups = j.cleanups[:last]
		inOrder(f)
	}
	return j.complaints
}

func (j *judge) complain(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.complaints = append(j.complaints, strings.TrimSpace(text))
}

func (j *judge) Cleanup(f func())                  { j.cleanups = append(j.cleanups, f) }
func (j *judge) Error(args ...any)                 { j.complain(fmt.Sprintln(args...)) }
func (j *judge) Errorf(format string, args ...any) { j.complain(fmt.Sprintf(format, args...)) }
func (j *judge) Fail()                             { j.complain("failed") }
func (j *judge) Failed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.complaints) > 0
}

func (j *judge) FailNow() {
	if !j.Failed() {
		j.Fail()
	}
	runtime.Goexit()
}

func (j *judge) Fatal(args ...any) {
	j.Error(args...)
	runtime.Goexit()
}

func (j *judge) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	runtime.Goexit()
}

// Log and Logf print nothing: the output of a planted bug does not concern the test.
func (j *judge) Log(...any)          {}
func (j *judge) Logf(string, ...any) {}

// A scenario's complaints are heard, however it makes them, and its cleanups run last first.
func TestAScenariosComplaintsAreHeard(t *testing.T) {
	t.Parallel()
	var order []string
	complaints := judged(t, func(t testing.TB) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() {
			order = append(order, "second")
			t.Errorf("at the end")
		})
		t.Error("one")
		t.Fatalf("two")
		order = append(order, "never")
	})
	if !slices.Equal(complaints, []string{"one", "two", "at the end"}) || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("complaints %q, order %q", complaints, order)
	}
	if got := judged(t, func(testing.TB) {}); got != nil {
		t.Errorf("a pass has complaints: %q", got)
	}
}
