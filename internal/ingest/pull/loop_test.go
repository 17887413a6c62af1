package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

// store is a Store in memory: sources are due once, and all calls are recorded.
type store struct {
	mu       sync.Mutex
	due      map[string][]Source
	calls    []string
	chunks   [][]Item
	failAt   int // the chunk call that fails, counted from 1
	failWith error
	listErr  error
	skipped  map[string]int
	finished []string
}

func (s *store) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *store) ReadySources(context.Context) ([]string, *time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for workspace := range s.due {
		names = append(names, workspace)
	}
	return names, nil, s.listErr
}

func (s *store) ClaimSources(_ context.Context, workspace, _ string, limit int) ([]Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(limit, len(s.due[workspace]))
	due := s.due[workspace][:n]
	s.due[workspace] = s.due[workspace][n:]
	return due, nil
}

func (s *store) IngestPullChunk(_ context.Context, _, sourceID, endpointID string, raw json.RawMessage) (ChunkAnswer, error) {
	var items []Item
	if err := json.Unmarshal(raw, &items); err != nil {
		return ChunkAnswer{}, err
	}
	s.mu.Lock()
	s.chunks = append(s.chunks, items)
	failed := len(s.chunks) == s.failAt
	s.mu.Unlock()
	if failed {
		return ChunkAnswer{}, s.failWith
	}
	s.note("chunk %s %s %d", sourceID, endpointID, len(items))
	return ChunkAnswer{CursorTo: items[len(items)-1].Cursor, Enqueued: len(items) - 1, Duplicate: 1, SkippedBy: s.skipped}, nil
}

func (s *store) SetPullCursor(_ context.Context, _, sourceID string, cursor json.RawMessage) error {
	s.note("cursor %s %s", sourceID, cursor)
	return nil
}

func (s *store) FailPoll(_ context.Context, _, sourceID string, failure Failure) error {
	s.note("failure %s %s: %s", sourceID, failure.Code, failure.Message)
	return nil
}

func (s *store) StartIngestRun(_ context.Context, workspace, kind, endpointID, sourceID string) (string, error) {
	s.note("start %s %s %s%s", workspace, kind, endpointID, sourceID)
	return "run-" + workspace, nil
}

func (s *store) FinishIngestRun(ctx context.Context, _, runID string, stats json.RawMessage) error {
	s.note("finish %s", runID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = append(s.finished, string(stats))
	return ctx.Err()
}

// fetch is a function that implements Fetcher.
type fetch func(ctx context.Context, source Source) (Batch, error)

func (f fetch) Fetch(ctx context.Context, source Source) (Batch, error) { return f(ctx, source) }

// items returns n items with the cursors 1 to n.
func items(n int) Batch {
	var b Batch
	for i := 1; i <= n; i++ {
		b.Cursor = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		b.Items = append(b.Items, Item{SourceRef: fmt.Sprint(i), Cursor: b.Cursor})
	}
	return b
}

func newLoop(t *testing.T, s *store, f fetch) *Loop {
	t.Helper()
	loop, err := NewLoop(Config{
		RunID: "run",
		Store: s, Fetchers: map[string]Fetcher{"rss": f}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return loop
}

func source(workspace, id string) Source {
	endpoint := "e-" + id
	return Source{WorkspaceID: workspace, SourceID: id, EndpointID: &endpoint, Kind: "rss"}
}

func TestHundredItemsAreOneChunk(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(100), nil }).runOnce(t.Context())
	require.Equal(t, []string{"start w pull ", "chunk a e-a 100", `cursor a {"n":100}`, "finish run-w"}, s.calls)
	require.JSONEq(t, `{"sources":1,"skipped":0,"failed":0,"items":100,"accepted":99,"enqueued":99,"submitted":0,"dropped":1,"rejected":0}`, s.finished[0])
}

func TestSkippedItemsAreCountedByReason(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a"), source("w", "b")}}, skipped: map[string]int{"exclude": 2, "backfill": 1}}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(5), nil }).runOnce(t.Context())
	require.Contains(t, s.finished[0], `"seen_by":{"backfill":2,"exclude":4}`)
}

func TestCursorMovesBehindEachCommittedChunk(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}, failAt: 3, failWith: fmt.Errorf("%w: no such item", worker.ErrRefused)}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(250), nil }).runOnce(t.Context())
	require.Equal(t, []string{
		"start w pull ", "chunk a e-a 100", `cursor a {"n":100}`, "chunk a e-a 100", `cursor a {"n":200}`,
		"failure a pull_failed: ingest pull chunk: refused by the database: no such item", "finish run-w",
	}, s.calls)
}

func TestDatabaseErrorsAreNotFailuresOfTheSource(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}, failAt: 1, failWith: errors.New("could not extend file")}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(100), nil }).runOnce(t.Context())
	require.Equal(t, []string{"start w pull ", "finish run-w"}, s.calls, "the source is polled again after its lease")
	require.Contains(t, s.finished[0], `"failed":1`)
}

func TestIncompleteBatchIsAFailure(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}}
	newLoop(t, s, func(context.Context, Source) (Batch, error) {
		batch := items(2)
		batch.Incomplete = &Failure{Code: "pull_gap", Message: "raise max_pages"}
		return batch, nil
	}).runOnce(t.Context())
	require.Equal(t, []string{"start w pull ", "chunk a e-a 2", `cursor a {"n":2}`, "failure a pull_gap: raise max_pages", "finish run-w"}, s.calls)
}

func TestNothingNewEndsThePollWithoutAChunk(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}, "idle": nil}}
	newLoop(t, s, func(context.Context, Source) (Batch, error) {
		return Batch{Cursor: json.RawMessage(`{"etag":"x"}`)}, nil
	}).runOnce(t.Context())
	require.Equal(t, []string{"start w pull ", `cursor a {"etag":"x"}`, "finish run-w"}, s.calls, "no run without a due source")
}

func TestFailedSourceDoesNotAffectOthers(t *testing.T) {
	orphan, alien := source("w", "orphan"), source("w", "alien")
	orphan.EndpointID = nil
	alien.Kind = "gopher"
	s := &store{due: map[string][]Source{"w": {orphan, alien, source("w", "bad"), source("w", "bomb"), source("w", "good"), source("w", "last")}}}
	newLoop(t, s, func(_ context.Context, source Source) (Batch, error) {
		switch source.SourceID {
		case "bad":
			return Batch{}, &Failure{Code: "pull_http_404", Message: "h answered 404"}
		case "bomb":
			panic("index out of range")
		}
		return items(1), nil
	}).runOnce(worker.ReportPanics(t.Context(), func(*worker.Panic) {}))
	for _, want := range []string{
		"failure orphan pull_no_endpoint: the source has no enabled endpoint", `failure alien pull_config: kind must be rss, got "gopher"`, "failure bad pull_http_404: h answered 404",
		"failure bomb pull_panic: the parser failed on the content of the source: panic: string", "chunk good e-good 1", "chunk last e-last 1",
	} {
		require.True(t, s.has(want), want)
	}
	require.Len(t, s.finished, 1, "one run for all sources")
	require.JSONEq(t, `{"sources":6,"skipped":1,"failed":3,"items":2,"accepted":0,"enqueued":0,"submitted":0,"dropped":2,"rejected":0}`, s.finished[0])
}

func TestSlowSourceDelaysOnlyItsWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{due: map[string][]Source{"slow": {source("slow", "a")}, "quick": nil}}
		loop := newLoop(t, s, func(ctx context.Context, source Source) (Batch, error) {
			if source.WorkspaceID == "slow" {
				<-ctx.Done()
				return Batch{}, &Failure{Code: "pull_timeout", Message: "h did not deliver"}
			}
			return items(1), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- loop.Run(ctx) }()
		synctest.Wait()
		s.mu.Lock()
		s.due["quick"] = []Source{source("quick", "b")}
		s.mu.Unlock()
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		require.True(t, s.has("chunk b e-b 1"))
		require.False(t, s.has("finish run-slow"))
		<-time.After(time.Minute)
		synctest.Wait()
		require.True(t, s.has("failure a pull_timeout: h did not deliver"))
		require.True(t, s.has("finish run-slow"))
		cancel()
		require.NoError(t, <-stopped)
	})
}

func TestWakeUpStartsAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{due: map[string][]Source{}}
		wake := make(chan struct{})
		loop, err := NewLoop(Config{
			RunID: "run",
			Store: s, Wake: wake, Interval: time.Hour, Log: slog.New(slog.DiscardHandler),
			Fetchers: map[string]Fetcher{"rss": fetch(func(context.Context, Source) (Batch, error) { return items(1), nil })},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- loop.Run(ctx) }()
		synctest.Wait()
		s.mu.Lock()
		s.due["w"] = []Source{source("w", "a")}
		s.mu.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		require.False(t, s.has("chunk"), "before the interval ends")
		wake <- struct{}{}
		synctest.Wait()
		require.True(t, s.has("chunk a e-a 1"))
		cancel()
		require.NoError(t, <-stopped)
	})
}

func TestStopEndsTheRunWithoutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{due: map[string][]Source{"w": {source("w", "a")}}}
		loop := newLoop(t, s, func(ctx context.Context, _ Source) (Batch, error) {
			<-ctx.Done()
			return Batch{}, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- loop.Run(ctx) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-stopped)
		require.Equal(t, []string{"start w pull ", "finish run-w"}, s.calls)
	})
}

func TestConfigIsChecked(t *testing.T) {
	_, err := NewLoop(Config{})
	require.ErrorContains(t, err, "required")
	s := &store{}
	for _, size := range []int{49, 201, -1} {
		_, err = NewLoop(Config{RunID: "run", Store: s, Fetchers: map[string]Fetcher{"rss": fetch(nil)}, ChunkSize: size})
		require.ErrorContains(t, err, "PULL_CHUNK_SIZE")
	}
}

func (s *store) has(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls, func(c string) bool { return strings.Contains(c, call) })
}

// panickyStore panics when it claims the sources of a workspace "odd…".
type panickyStore struct{ store }

func (s *panickyStore) ClaimSources(ctx context.Context, workspace, run string, limit int) ([]Source, error) {
	if strings.HasPrefix(workspace, "odd") {
		panic(workspace)
	}
	return s.store.ClaimSources(ctx, workspace, run, limit)
}

// Many workspaces poll many sources at once. A panic ends only the run of its workspace, or the poll of its source.
func TestManyWorkspacesPollAtOnceAndPanics(t *testing.T) {
	t.Parallel()
	const workspaces, sources = 40, 9
	s := &panickyStore{store{due: map[string][]Source{}}}
	for n := range workspaces {
		s.due[fmt.Sprint("odd", n)] = nil
		for id := range sources {
			s.due[fmt.Sprint("w", n)] = append(s.due[fmt.Sprint("w", n)], source(fmt.Sprint("w", n), fmt.Sprint(id)))
		}
	}
	loop := newLoop(t, &s.store, func(_ context.Context, source Source) (Batch, error) {
		if source.SourceID == "4" {
			panic("the parser")
		}
		return items(3), nil
	})
	loop.cfg.Store = s
	var panics atomic.Int64
	loop.runOnce(worker.ReportPanics(t.Context(), func(*worker.Panic) { panics.Add(1) }))
	require.Len(t, s.chunks, workspaces*(sources-1))
	require.Len(t, s.finished, workspaces)
	require.Equal(t, int64(2*workspaces), panics.Load())
	require.Empty(t, loop.slots)
}
