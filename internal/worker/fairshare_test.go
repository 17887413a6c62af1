package worker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

func TestOneKeyLeavesCapacityForOthers(t *testing.T) {
	t.Parallel()
	for weight, want := range map[int]int{1: 50, 2: 67, 4: 80} {
		f := worker.NewFairShare(100, func(string) int { return weight })
		n := 0
		for ; f.Left("a") > 0; n++ {
			f.Take(1, "a")
		}
		require.Equal(t, want, n, "weight %d", weight)
		require.Positive(t, f.Left("b"), "another key finds capacity")
	}
}

func TestLeftIsTheMostThatMayBeTakenAtOnce(t *testing.T) {
	t.Parallel()
	for held := range 60 {
		one, many := worker.NewFairShare[string](100, nil), worker.NewFairShare[string](100, nil)
		one.Take(held, "a")
		many.Take(held, "a")
		n := 0
		for ; one.Left("a") > 0; n++ {
			one.Take(1, "a")
		}
		require.Equal(t, many.Left("a"), n, "held %d", held)
	}
}

func TestReleasedCapacityIsFreeAgain(t *testing.T) {
	t.Parallel()
	f := worker.NewFairShare[string](4, nil)
	f.Take(2, "a", "host")
	require.Equal(t, 2, f.Taken())
	require.ElementsMatch(t, []string{"a", "host"}, f.Keys())
	f.Release(2, "a", "host")
	require.Zero(t, f.Taken())
	require.Empty(t, f.Keys())
	require.Equal(t, 2, f.Left("a"))
}

func TestAcquireWaitsForARelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := worker.NewFairShare[string](4, nil)
		require.NoError(t, f.Acquire(t.Context(), "a", "host"))
		require.NoError(t, f.Acquire(t.Context(), "b", "host"))
		time.AfterFunc(time.Minute, func() { f.Release(1, "a", "host") })
		start := time.Now()
		require.NoError(t, f.Acquire(t.Context(), "c", "host"), "the host has its share")
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, f.Acquire(t.Context(), "c", "other"))
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := worker.NewFairShare[string](0, nil)
	lost := errors.New("the lease was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	require.ErrorIs(t, f.Acquire(ctx, "a"), lost)
}

// Many keys take, wait for and release capacity at once.
func TestManyKeysShareAtOnce(t *testing.T) {
	t.Parallel()
	share := worker.NewFairShare[int](16, nil)
	var perKey worker.PerKey
	var done atomic.Int64
	var sharing sync.WaitGroup
	for n := range 400 {
		sharing.Go(func() {
			if err := share.Acquire(t.Context(), n%50, 100+n%3); err != nil {
				t.Error(err)
				return
			}
			_, _ = share.Keys(), share.Left(n%50)
			perKey.Start(t.Context(), strconv.Itoa(n%50), func() { done.Add(1) })
			share.Release(1, n%50, 100+n%3)
		})
	}
	sharing.Wait()
	perKey.Wait()
	require.Zero(t, share.Taken())
	require.Empty(t, share.Keys())
	require.GreaterOrEqual(t, done.Load(), int64(50))
}
