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
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// store is the database in memory: sources are due once, everything else is written down.
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

func (s *store) ListDueSources(_ context.Context, workspace string, limit int) ([]Source, error) {
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

// fetch is a Fetcher made of a function.
type fetch func(ctx context.Context, source Source) (Batch, error)

func (f fetch) Fetch(ctx context.Context, source Source) (Batch, error) { return f(ctx, source) }

// items are n items with the cursors 1 to n.
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
		Sources: s, Chunks: s, Failures: s, Runs: s, Fetchers: map[string]Fetcher{"rss": f}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return loop
}

func source(workspace, id string) Source {
	endpoint := "e-" + id
	return Source{WorkspaceID: workspace, SourceID: id, EndpointID: &endpoint, Kind: "rss"}
}

func TestHundredItemsAreOneCall(t *testing.T) {
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
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}, failAt: 3, failWith: errors.New("refused: no such item")}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(250), nil }).runOnce(t.Context())
	require.Equal(t, []string{
		"start w pull ", "chunk a e-a 100", `cursor a {"n":100}`, "chunk a e-a 100", `cursor a {"n":200}`,
		"failure a pull_failed: ingest pull chunk: refused: no such item", "finish run-w",
	}, s.calls)
}

func TestDatabaseThatTakesNothingIsNoFaultOfTheSource(t *testing.T) {
	s := &store{due: map[string][]Source{"w": {source("w", "a")}}, failAt: 1, failWith: fmt.Errorf("%w: could not extend file", ErrUnavailable)}
	newLoop(t, s, func(context.Context, Source) (Batch, error) { return items(100), nil }).runOnce(t.Context())
	require.Equal(t, []string{"start w pull ", "finish run-w"}, s.calls, "and the source is polled when its lease is over")
	require.Contains(t, s.finished[0], `"failed":1`)
}

func TestWhatOnePollCannotReadIsTold(t *testing.T) {
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
	require.Equal(t, []string{"start w pull ", `cursor a {"etag":"x"}`, "finish run-w"}, s.calls, "no run where nothing is due")
}

func TestOneSourceNeverStopsTheOthers(t *testing.T) {
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
	}).runOnce(t.Context())
	for _, want := range []string{
		"failure orphan pull_no_endpoint: the source has no enabled endpoint", `failure alien pull_config: kind "gopher" is not served here`, "failure bad pull_http_404: h answered 404",
		"failure bomb pull_panic: the source made its parser panic: index out of range", "chunk good e-good 1", "chunk last e-last 1",
	} {
		require.True(t, s.has(want), want)
	}
	require.Len(t, s.finished, 1, "one run for the round, however many sources")
	require.JSONEq(t, `{"sources":6,"skipped":1,"failed":3,"items":2,"accepted":0,"enqueued":0,"submitted":0,"dropped":2,"rejected":0}`, s.finished[0])
}

func TestSlowSourceHoldsUpItsWorkspaceAloneAndEndsInTime(t *testing.T) {
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

func TestLoopIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{due: map[string][]Source{}}
		wake := make(chan struct{})
		loop, err := NewLoop(Config{
			Sources: s, Chunks: s, Failures: s, Runs: s, Wake: wake, Interval: time.Hour, Log: slog.New(slog.DiscardHandler),
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
		require.False(t, s.has("chunk"), "it is not time yet")
		wake <- struct{}{}
		synctest.Wait()
		require.True(t, s.has("chunk a e-a 1"))
		cancel()
		require.NoError(t, <-stopped)
	})
}

func TestStoppingRecordsNoFailureAndClosesTheRun(t *testing.T) {
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
		_, err = NewLoop(Config{Sources: s, Chunks: s, Failures: s, Runs: s, Fetchers: map[string]Fetcher{"rss": fetch(nil)}, ChunkSize: size})
		require.ErrorContains(t, err, "PULL_CHUNK_SIZE")
	}
}

func (s *store) has(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls, func(c string) bool { return strings.Contains(c, call) })
}
