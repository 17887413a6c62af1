package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

// jobs is a Store: each workspace has a list of statuses, one per call.
type jobs struct {
	Store

	mu    sync.Mutex
	left  map[string][]string
	asked map[string]int
	err   error
}

func (j *jobs) ReadyFanoutWorkspaces(context.Context, int) ([]string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ready []string
	for workspace, left := range j.left {
		if len(left) > 0 {
			ready = append(ready, workspace)
		}
	}
	return ready, nil
}

func (j *jobs) RunFanout(_ context.Context, workspace string, _ int) (Fanout, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[workspace]++
	if j.err != nil {
		return Fanout{}, j.err
	}
	if len(j.left[workspace]) == 0 {
		return Fanout{Status: "idle"}, nil
	}
	status := j.left[workspace][0]
	j.left[workspace] = j.left[workspace][1:]
	return Fanout{Status: status}, nil
}

func newFanoutWorker(t *testing.T, j *jobs, wake <-chan struct{}) *FanoutWorker {
	t.Helper()
	j.asked = map[string]int{}
	w, err := NewFanoutWorker(FanoutConfig{Store: j, Wake: wake, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return w
}

// A deferred job does not block the next one. A job that another daemon holds is left alone.
func TestFanoutRunsUntilNoJobIsLeft(t *testing.T) {
	j := &jobs{left: map[string][]string{
		"a": {"running", "running", "done", "failed", "running", "done"},
		"b": {"running", "busy", "running"},
	}}
	newFanoutWorker(t, j, nil).runOnce(t.Context())
	require.Equal(t, map[string]int{"a": 7, "b": 2}, j.asked)
}

func TestFanoutContinuesAfterAnError(t *testing.T) {
	j := &jobs{left: map[string][]string{"a": {"done"}}, err: errors.New("away")}
	w := newFanoutWorker(t, j, nil)
	w.runOnce(t.Context())
	j.err = nil
	w.runOnce(t.Context())
	require.Equal(t, map[string]int{"a": 3}, j.asked)
}

func TestFanoutWakesAndPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &jobs{left: map[string][]string{}}
		wake := make(chan struct{})
		w := newFanoutWorker(t, j, wake)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- w.Run(ctx) }()
		synctest.Wait()

		give := func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.left["a"] = []string{"done"}
		}
		count := func() int {
			j.mu.Lock()
			defer j.mu.Unlock()
			return j.asked["a"]
		}
		give()
		wake <- struct{}{}
		synctest.Wait()
		require.Equal(t, 2, count(), "woken")
		give()
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 4, count(), "after the interval")
		stop()
		require.NoError(t, <-over)
	})
}

func TestFanoutRequiresAStore(t *testing.T) {
	_, err := NewFanoutWorker(FanoutConfig{})
	require.Error(t, err)
}

// panickyJobs panics at each call for a workspace with an odd number.
type panickyJobs struct{ jobs }

func (j *panickyJobs) RunFanout(ctx context.Context, workspace string, limit int) (Fanout, error) {
	if strings.HasSuffix(workspace, "-odd") {
		panic(workspace)
	}
	return j.jobs.RunFanout(ctx, workspace, limit)
}

// Many workspaces fan out at once. A panic ends only the run of its workspace, and returns its slot.
func TestManyWorkspacesFanOutAtOnceAndPanics(t *testing.T) {
	t.Parallel()
	j := &panickyJobs{jobs{left: map[string][]string{}, asked: map[string]int{}}}
	for n := range 60 {
		j.left[fmt.Sprint(n)] = []string{"running", "failed", "done"}
		j.left[fmt.Sprint(n, "-odd")] = []string{"running"}
	}
	w, err := NewFanoutWorker(FanoutConfig{Store: j, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var panics atomic.Int64
	w.runOnce(worker.ReportPanics(t.Context(), func(*worker.Panic) { panics.Add(1) }))
	for n := range 60 {
		require.Equal(t, 4, j.asked[fmt.Sprint(n)], "until it is idle")
	}
	require.Equal(t, int64(60), panics.Load())
	require.Empty(t, w.slots)
}
