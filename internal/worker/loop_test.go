package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

var errAway = errors.New("the database is away")

// polls runs a loop for d of fake time and returns when it polled, counted from its start.
func polls(t *testing.T, d time.Duration, l worker.Loop, poll func(n int) (time.Duration, error)) (at []time.Duration) {
	t.Helper()
	start := time.Now()
	l.Poll = func(context.Context) (time.Duration, error) {
		at = append(at, time.Since(start))
		return poll(len(at) - 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, l.Run(ctx))
	return at
}

func fine(int) (time.Duration, error) { return 0, nil }

func failing(int) (time.Duration, error) { return 0, errAway }

func TestLoopPollsAtOnceAndThenPeriodically(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := polls(t, 10*time.Second, worker.Loop{Interval: 4 * time.Second}, fine)
		require.Equal(t, []time.Duration{0, 4 * time.Second, 8 * time.Second}, at)
	})
}

func TestLoopWaitsForItsDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := polls(t, 8*time.Second, worker.Loop{Interval: 4 * time.Second, Delay: 3 * time.Second}, fine)
		require.Equal(t, []time.Duration{3 * time.Second, 7 * time.Second}, at)
	})
}

func TestPollSetsTheNextPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := polls(t, 9*time.Second, worker.Loop{Interval: 4 * time.Second}, func(n int) (time.Duration, error) {
			return []time.Duration{time.Second, 5 * time.Second, 0}[n], nil
		})
		require.Equal(t, []time.Duration{0, time.Second, 6 * time.Second}, at)
	})
}

func TestLoopBacksOffAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 5 * time.Second
		at := polls(t, 15*time.Second, worker.Loop{Interval: interval}, failing)
		require.Equal(t, []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 12 * time.Second}, at)
		at = polls(t, 2500*time.Millisecond, worker.Loop{Interval: interval, Backoff: worker.Backoff{Least: time.Second, Most: time.Second}}, failing)
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
		at = polls(t, 8*time.Second, worker.Loop{Interval: interval}, func(n int) (time.Duration, error) {
			return 0, []error{errAway, nil, errAway, nil}[n]
		})
		require.Equal(t, []time.Duration{0, time.Second, 6 * time.Second, 7 * time.Second}, at, "a success starts the backoff again")
	})
}

func TestWakeUpsEndAPause(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(l *worker.Loop, c chan struct{}){
		"wake":  func(l *worker.Loop, c chan struct{}) { l.Wake = c },
		"freed": func(l *worker.Loop, c chan struct{}) { l.Freed = c },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := make(chan struct{}, 1)
				time.AfterFunc(time.Second, func() { worker.Wake(c) })
				l := worker.Loop{Interval: time.Minute}
				with(&l, c)
				at := polls(t, 30*time.Second, l, func(n int) (time.Duration, error) {
					if n == 1 {
						worker.Wake(c) // during a poll
						worker.Wake(c)
					}
					return 0, nil
				})
				require.Equal(t, []time.Duration{0, time.Second, time.Second}, at)
			})
		})
	}
}

func TestAClosedWakeUpIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		close(wake)
		at := polls(t, 10*time.Second, worker.Loop{Interval: 4 * time.Second, Wake: wake}, fine)
		require.Equal(t, []time.Duration{0, 4 * time.Second, 8 * time.Second}, at)
	})
}

func TestAnOutageIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		polls(t, time.Hour, worker.Loop{Interval: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)), Name: "fanout"},
			func(n int) (time.Duration, error) {
				if n < 10 {
					return 0, errAway
				}
				return 0, nil
			})
		require.Equal(t, 1, strings.Count(log.String(), "fanout.unavailable"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "fanout.recovered"), log.String())
		require.Contains(t, log.String(), errAway.Error())
	})
}

func TestAnEndedContextStopsTheLoop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	require.NoError(t, worker.Loop{Interval: time.Hour, Poll: func(context.Context) (time.Duration, error) {
		n++
		cancel()
		return 0, context.Canceled
	}}.Run(ctx))
	require.Equal(t, 1, n)
	require.NoError(t, worker.Loop{Interval: time.Hour}.Run(ctx), "no poll after the end")
}
