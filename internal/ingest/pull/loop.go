package pull

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost/internal/failpoint"
	"autopost/internal/worker"
)

// Config configures the loop. Store and Fetchers are required.
type Config struct {
	Store Store
	// RunID identifies this daemon in its leases.
	RunID string
	// Fetchers by pull_sources.kind.
	Fetchers map[string]Fetcher
	// ChunkSize is PULL_CHUNK_SIZE, 50 to 200; 100 by default.
	ChunkSize int
	// Wake means that a source is due or will be soon; it may be nil.
	Wake <-chan struct{}
	// Interval is the longest time between two polls; 5 s by default. Without a wake-up a new source waits this long.
	Interval time.Duration
	// Budget is the longest time for one source; 60 s by default.
	Budget time.Duration
	// Concurrency is how many sources of all workspaces are polled at once; 32 by default.
	Concurrency int
	// Log is slog.Default() by default.
	Log *slog.Logger
}

const (
	// sourcesAtOnce is how many sources of one workspace are polled at once.
	sourcesAtOnce = 4
	// batchesPerRun limits a run of a workspace whose sources are always due.
	batchesPerRun = 25
	// recordTimeout is the time to record the end of a poll or a run, also while the daemon stops.
	recordTimeout = 5 * time.Second
	// minPause is the shortest time between two polls, and the shortest interval_seconds.
	minPause = time.Second
	minChunk = 50
	maxChunk = 200
)

// Loop polls the due sources of all active workspaces.
type Loop struct {
	cfg   Config
	slots chan struct{}
	runs  worker.PerKey
}

// NewLoop checks the configuration and fills in its defaults.
func NewLoop(cfg Config) (*Loop, error) {
	if cfg.Store == nil || len(cfg.Fetchers) == 0 || cfg.RunID == "" {
		return nil, errors.New("pull loop: a store, fetchers and a run id are required")
	}
	cfg.ChunkSize = cmp.Or(cfg.ChunkSize, 100)
	if cfg.ChunkSize < minChunk || cfg.ChunkSize > maxChunk {
		return nil, fmt.Errorf("PULL_CHUNK_SIZE must be %d to %d, got %d", minChunk, maxChunk, cfg.ChunkSize)
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Budget = cmp.Or(cfg.Budget, time.Minute)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 32)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Loop{cfg: cfg, slots: make(chan struct{}, cfg.Concurrency)}, nil
}

// Run polls until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	defer l.runs.Wait()
	return worker.Loop{Poll: l.poll, Interval: l.cfg.Interval, Wake: l.cfg.Wake, Log: l.cfg.Log, Name: "pull"}.Run(ctx)
}

// runOnce polls the sources that are due and returns when that is done.
func (l *Loop) runOnce(ctx context.Context) {
	_, _ = l.poll(ctx)
	l.runs.Wait()
}

// poll starts a run of every workspace in which a source is due, and returns the time until the next poll. It does
// not wait: slow sources delay only the next run of their own workspace.
func (l *Loop) poll(ctx context.Context) (next time.Duration, err error) {
	workspaces, nextIn, err := l.cfg.Store.ReadySources(ctx)
	for _, workspace := range workspaces {
		l.runs.Start(ctx, workspace, func() {
			if err := l.run(ctx, workspace); err != nil && ctx.Err() == nil {
				l.cfg.Log.WarnContext(ctx, "pull.round_failed", "workspace_id", workspace, "error", err)
			}
		})
	}
	switch {
	case len(workspaces) > 0:
		return minPause, err // a source may be due whose workspace still has a run
	case nextIn != nil:
		return min(max(*nextIn, minPause), l.cfg.Interval), err
	default:
		return l.cfg.Interval, err
	}
}

// run polls the due sources of one workspace, as one ingest run. Without a due source it records no run.
func (l *Loop) run(ctx context.Context, workspace string) error {
	due, err := l.due(ctx, workspace)
	if err != nil || len(due) == 0 {
		return err
	}
	started := time.Now()
	run, err := l.cfg.Store.StartIngestRun(ctx, workspace, "pull", "", "")
	if err != nil {
		return fmt.Errorf("start ingest run ws=%s: %w", workspace, err)
	}
	var stats tally
	for range batchesPerRun {
		var group errgroup.Group
		for _, source := range due {
			group.Go(worker.Contained(ctx, func() error {
				l.pollSource(ctx, source, &stats)
				return nil
			}))
		}
		_ = group.Wait() // a panic was reported
		if len(due) < sourcesAtOnce || ctx.Err() != nil {
			break
		}
		// The sources already polled count, also if the next ones are unknown.
		if due, err = l.due(ctx, workspace); err != nil {
			break
		}
	}
	err = errors.Join(err, l.finish(ctx, workspace, run, &stats))
	l.cfg.Log.InfoContext(ctx, "pull.round", "workspace_id", workspace, "run_id", run, "stats", stats.counts,
		"duration_ms", time.Since(started).Milliseconds())
	return err
}

func (l *Loop) due(ctx context.Context, workspace string) ([]Source, error) {
	due, err := l.cfg.Store.ClaimSources(ctx, workspace, l.cfg.RunID, sourcesAtOnce)
	if err != nil {
		return nil, fmt.Errorf("claim sources ws=%s: %w", workspace, err)
	}
	return due, nil
}

func (l *Loop) finish(ctx context.Context, workspace, run string, stats *tally) error {
	raw, err := json.Marshal(stats.counts)
	if err != nil {
		return fmt.Errorf("encode stats: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := l.cfg.Store.FinishIngestRun(ctx, workspace, run, raw); err != nil {
		return fmt.Errorf("finish ingest run ws=%s run=%s: %w", workspace, run, err)
	}
	return nil
}

// pollSource polls one source and records the result. A source cannot affect the others.
func (l *Loop) pollSource(ctx context.Context, source Source, stats *tally) {
	select {
	case <-ctx.Done():
		return
	case l.slots <- struct{}{}:
	}
	defer func() { <-l.slots }()
	var polled counts
	err := worker.Contained(ctx, func() (err error) {
		polled, err = l.fetch(ctx, source)
		return err
	})()
	// A document that makes a parser panic must fail only its own source.
	if panicked, ok := errors.AsType[*worker.Panic](err); ok {
		err = &Failure{Code: "pull_panic", Message: "the parser failed on the content of the source: " + panicked.Error()}
	}
	if ctx.Err() != nil && err != nil {
		return // the worker stops: the lease ends later
	}
	missing := source.EndpointID == nil
	stats.add(func(c *counts) {
		c.Sources++
		c.Items += polled.Items
		c.Accepted += polled.Accepted
		c.Enqueued += polled.Enqueued
		c.Submitted += polled.Submitted
		c.Dropped += polled.Dropped
		c.Rejected += polled.Rejected
		for reason, n := range polled.SeenBy {
			c.see(reason, n)
		}
		switch {
		case missing:
			c.Skipped++
		case err != nil:
			c.Failed++
		}
	})
	switch {
	case errors.Is(err, errUnavailable):
		l.cfg.Log.ErrorContext(ctx, "pull.not_taken", "workspace_id", source.WorkspaceID, "source_id", source.SourceID, "error", err)
	case err != nil:
		l.recordFailure(ctx, source, err)
	}
}

func (l *Loop) recordFailure(ctx context.Context, source Source, err error) {
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		failure = &Failure{Code: "pull_failed", Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	recorded := l.cfg.Store.FailPoll(ctx, source.WorkspaceID, source.SourceID, *failure)
	l.cfg.Log.WarnContext(ctx, "pull.source_failed", "workspace_id", source.WorkspaceID, "source_id", source.SourceID,
		"kind", source.Kind, "code", failure.Code, "message", failure.Message, "record_error", recorded)
}

// fetch fetches the items of one source and stores them.
func (l *Loop) fetch(ctx context.Context, source Source) (polled counts, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget)
	defer cancel()
	if source.EndpointID == nil {
		return polled, &Failure{Code: "pull_no_endpoint", Message: "the source has no enabled endpoint: create one by autopost source set, or enable the endpoint of kind pull_source with this source_id"}
	}
	fetcher, ok := l.cfg.Fetchers[source.Kind]
	if !ok {
		return polled, &Failure{Code: "pull_config", Message: fmt.Sprintf("kind must be %s, got %q", strings.Join(slices.Sorted(maps.Keys(l.cfg.Fetchers)), " or "), source.Kind)}
	}
	batch, err := fetcher.Fetch(ctx, source)
	if err != nil {
		return polled, err
	}
	failpoint.Hit(failpoint.SourceFetched)
	if len(batch.Items) == 0 {
		return polled, l.setCursor(ctx, source, batch.Cursor)
	}
	for chunk := range slices.Chunk(batch.Items, l.cfg.ChunkSize) {
		if err := l.ingest(ctx, source, chunk, &polled); err != nil {
			return polled, err
		}
	}
	if batch.Incomplete != nil {
		return polled, batch.Incomplete
	}
	return polled, nil
}

// ingest commits one chunk and then moves the cursor behind it.
func (l *Loop) ingest(ctx context.Context, source Source, chunk []Item, polled *counts) error {
	raw, err := json.Marshal(chunk)
	if err != nil {
		return fmt.Errorf("encode chunk: %w", err)
	}
	failpoint.Within(failpoint.InsideChunk)
	answer, err := l.cfg.Store.IngestPullChunk(ctx, source.WorkspaceID, source.SourceID, *source.EndpointID, raw)
	if err != nil {
		return unavailable(fmt.Errorf("ingest pull chunk: %w", err))
	}
	failpoint.Hit(failpoint.ChunkCommitted)
	polled.Items += len(chunk)
	polled.Accepted += answer.Enqueued + answer.Submitted
	polled.Enqueued += answer.Enqueued
	polled.Submitted += answer.Submitted
	polled.Dropped += answer.Duplicate
	polled.Rejected += answer.Rejected
	for reason, n := range answer.SkippedBy {
		polled.see(reason, n)
	}
	return l.setCursor(ctx, source, answer.CursorTo)
}

func (l *Loop) setCursor(ctx context.Context, source Source, cursor json.RawMessage) error {
	if err := l.cfg.Store.SetPullCursor(ctx, source.WorkspaceID, source.SourceID, cursor); err != nil {
		return unavailable(fmt.Errorf("set pull cursor: %w", err))
	}
	return nil
}

// errUnavailable marks an error of the database that the source did not cause. The source is polled again after its lease.
var errUnavailable = errors.New("the database takes no items at the moment")

func unavailable(err error) error {
	if errors.Is(err, worker.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnavailable, err)
}

// counts are the stats_json of a run.
type counts struct {
	Sources int `json:"sources"`
	// Skipped sources have no enabled endpoint.
	Skipped int `json:"skipped"`
	Failed  int `json:"failed"`
	Items   int `json:"items"`
	// Accepted is Enqueued and Submitted together.
	Accepted  int `json:"accepted"`
	Enqueued  int `json:"enqueued"`
	Submitted int `json:"submitted"`
	// Dropped items were seen before.
	Dropped  int `json:"dropped"`
	Rejected int `json:"rejected"`
	// SeenBy counts new items that were only marked as seen, by reason.
	SeenBy map[string]int `json:"seen_by,omitempty"`
}

func (c *counts) see(reason string, n int) {
	if c.SeenBy == nil {
		c.SeenBy = map[string]int{}
	}
	c.SeenBy[reason] += n
}

type tally struct {
	mu     sync.Mutex
	counts counts
}

func (t *tally) add(change func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}
