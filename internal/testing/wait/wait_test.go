package wait_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"autopost/internal/testing/wait"
)

// recorder keeps the failure of a test instead of failing.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestUntilReturnsWhenTheConditionHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		wait.Until(t, "three calls", func() bool { calls++; return calls == 3 })
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the wait took %s", took)
		}
	})
}

func TestUntilFailsAfterTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, r := time.Now(), &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			wait.Until(r, "the impossible", func() bool { return false }, func() string { return "the queue is empty" })
		}()
		<-done
		if took := time.Since(began); took != wait.Bound {
			t.Errorf("the wait took %s", took)
		}
		if !strings.Contains(r.failure, "the impossible\nthe queue is empty") {
			t.Errorf("failure: %q", r.failure)
		}
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		open, closed := make(chan struct{}), make(chan struct{})
		close(closed)
		if !wait.Closed(closed) || wait.Closed(open) {
			t.Error("Closed does not distinguish an open channel from a closed one")
		}
	})
}
