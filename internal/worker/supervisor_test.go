package worker_test

import (
	"context"
	"errors"
	"slices"
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

// panics records the reported panics of a Supervisor.
func panics(group *worker.Supervisor) *record {
	var seen record
	group.Panicked = func(_ context.Context, runner string, failure *worker.Panic) {
		seen.add(runner + ": " + failure.Error())
	}
	return &seen
}

func TestAPanickedRunnerRunsAgainAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order record
		var group worker.Supervisor
		seen := panics(&group)
		began := time.Now()
		var runs []time.Duration
		group.Add("first", untilStopped("first", 0, &order))
		group.Add("bad", worker.Func(func(ctx context.Context) error {
			runs = append(runs, time.Since(began))
			if len(runs) == 4 {
				<-time.After(time.Hour)
			}
			if len(runs) < 6 {
				panic("token of the caller")
			}
			return untilStopped("bad", 0, &order)(ctx)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		require.NoError(t, group.Run(ctx))
		require.Equal(t, []string{"bad", "first"}, order.all(), "both worked until the stop")
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second,
			time.Hour + 8*time.Second, time.Hour + 10*time.Second}, runs, "the pause doubles, and starts again after an hour of work")
		require.Equal(t, slices.Repeat([]string{"bad: panic: string"}, 5), seen.all(), "the text has no value of the caller")
	})
}

func TestAStopEndsThePauseAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group worker.Supervisor
		group.Add("bad", worker.Func(func(context.Context) error { panic("boom") }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		require.NoError(t, group.Run(ctx))
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// A panic of one task, poll or merged call is reported and ends nothing else.
func TestAPanicEndsOnlyItsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group worker.Supervisor
		seen := panics(&group)
		var empty []int
		polls, tasks := 0, make(chan int, 3)
		group.Add("stage", worker.Func(func(ctx context.Context) error {
			var perKey worker.PerKey
			for n := range 4 {
				perKey.Start(ctx, "key", func() { tasks <- 1 / n })
				perKey.Wait()
			}
			merged := worker.NewBatcher(ctx, worker.Bounds{Most: 6, Timeout: time.Minute}, func(_ context.Context, n int, items []int) ([]int, error) {
				return []int{empty[n]}, nil
			})
			_, err := merged.Do(ctx, 7, 1)
			require.ErrorContains(t, err, "index out of range [7]")
			return worker.Loop{Interval: time.Minute, Poll: func(context.Context) (time.Duration, error) {
				if polls++; polls == 2 {
					panic(errors.New("token of the caller"))
				}
				return 0, nil
			}}.Run(ctx)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.NoError(t, group.Run(ctx))
		require.Len(t, tasks, 3)
		require.Equal(t, 6, polls, "after a panic the next poll follows sooner")
		require.Equal(t, []string{
			"stage: panic: runtime error: integer divide by zero", "stage: panic: runtime error: index out of range [7] with length 0",
			"stage: panic: *errors.errorString",
		}, seen.all())
	})
}

func TestWithoutASupervisorAPanicContinues(t *testing.T) {
	t.Parallel()
	require.Panics(t, worker.Task(t.Context(), func() { panic("boom") }))
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
