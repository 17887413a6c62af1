package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

// record keeps the order in which runners ended.
type record struct {
	mu    sync.Mutex
	names []string
}

func (r *record) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names
}

// untilStopped runs until it is stopped and then takes the given time to end.
func untilStopped(name string, takes time.Duration, order *record) worker.Func {
	return func(ctx context.Context) error {
		<-ctx.Done()
		<-time.After(takes)
		order.add(name)
		return ctx.Err()
	}
}

func TestRunnersStopInReverseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order record
		var group worker.Supervisor
		group.Add("database", untilStopped("database", 0, &order))
		group.Add("dispatch", untilStopped("dispatch", 10*time.Second, &order))
		group.Add("web", untilStopped("web", time.Second, &order))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		start := time.Now()
		require.NoError(t, group.Run(ctx), "a stop is not a failure")
		require.Equal(t, []string{"web", "dispatch", "database"}, order.all())
		require.Equal(t, time.Hour+11*time.Second, time.Since(start))
	})
}

func TestOneFailureStopsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order record
		broken, failing := errors.New("broken"), errors.New("and this while ending")
		var group worker.Supervisor
		group.Add("first", untilStopped("first", 0, &order))
		group.Add("bad", worker.Func(func(context.Context) error { return broken }))
		group.Add("last", worker.Func(func(ctx context.Context) error {
			<-ctx.Done()
			return failing
		}))
		err := group.Run(t.Context())
		require.ErrorIs(t, err, broken)
		require.ErrorIs(t, err, failing)
		require.ErrorContains(t, err, "bad: broken")
		require.Equal(t, []string{"first"}, order.all())
	})
}

func TestAPanicIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order record
		var group worker.Supervisor
		group.Add("first", untilStopped("first", 0, &order))
		group.Add("bad", worker.Func(func(context.Context) error { panic("boom") }))
		err := group.Run(t.Context())
		require.ErrorContains(t, err, "bad: panic: boom")
		require.ErrorContains(t, err, "supervisor_test.go", "the error says where")
		require.Equal(t, []string{"first"}, order.all())
	})
}

func TestARunnerThatCancelsItselfFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group worker.Supervisor
		group.Add("bad", worker.Func(func(context.Context) error { return context.Canceled }))
		require.ErrorIs(t, group.Run(t.Context()), context.Canceled)
	})
}

func TestARunnerMayFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group worker.Supervisor
		group.Add("short", worker.Func(func(context.Context) error { return nil }))
		group.Add("long", worker.Func(func(context.Context) error {
			<-time.After(time.Hour)
			return nil
		}))
		start := time.Now()
		require.NoError(t, group.Run(t.Context()))
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestLateRunnersAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order record
		group := worker.Supervisor{StopWithin: 5 * time.Second}
		group.Add("obedient", untilStopped("obedient", 0, &order))
		group.Add("stubborn", untilStopped("stubborn", time.Minute, &order))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := group.Run(ctx)
		require.ErrorContains(t, err, "still running after 5s")
		require.ErrorContains(t, err, "stubborn")
		require.Equal(t, 5*time.Second, time.Since(start))
		<-time.After(time.Hour)
		require.Equal(t, []string{"obedient", "stubborn"}, order.all(), "the others are stopped, too")
	})
}

func TestAnEmptySupervisorReturns(t *testing.T) {
	t.Parallel()
	require.NoError(t, new(worker.Supervisor).Run(t.Context()))
}
