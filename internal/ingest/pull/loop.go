package pull

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost/internal/crash"
	"autopost/internal/service"
)

// Config is what the loop needs. The four interfaces and Fetchers are required.
type Config struct {
	Sources  Sources
	Chunks   Chunks
	Failures Failures
	Runs     Runs
	// Fetchers by pull_sources.kind.
	Fetchers map[string]Fetcher
	// ChunkSize is PULL_CHUNK_SIZE, 50 to 200; 100.
	ChunkSize int
	// Wake hints that a source is due, or will be soon; nil = nobody hints.
	Wake <-chan struct{}
	// Interval is the longest time between two looks for due sources: how soon a new
	// one is found that nobody hints at; 5 s.
	Interval time.Duration
	// Budget is the longest that one source may take; 60 s.
	Budget time.Duration
	// Concurrency is how many sources are asked at once, of all workspaces; 32.
	Concurrency int
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

const (
	// sourcesAtOnce is how many sources of one workspace are asked at once.
	sourcesAtOnce = 4
	// batchesPerRound bounds a run of a workspace whose sources are always due.
	batchesPerRound = 25
	// recordTimeout is the time to write down how a poll or a round ended, also
	// while the daemon is stopping.
	recordTimeout = 5 * time.Second
	// lookLeast is the shortest time between two looks, and the shortest interval_seconds.
	lookLeast = time.Second
	minChunk  = 50
	maxChunk  = 200
)

// Loop polls the due sources of all active workspaces.
type Loop struct {
	cfg    Config
	slots  chan struct{}
	turns  service.Turns
	outage service.Outage
}

// NewLoop checks the configuration and fills in its defaults.
func NewLoop(cfg Config) (*Loop, error) {
	if cfg.Sources == nil || cfg.Chunks == nil || cfg.Failures == nil || cfg.Runs == nil || len(cfg.Fetchers) == 0 {
		return nil, errors.New("pull loop: sources, chunks, failures, runs and fetchers are required")
	}
	cfg.ChunkSize = cmp.Or(cfg.ChunkSize, 100)
	if cfg.ChunkSize < minChunk || cfg.ChunkSize > maxChunk {
		return nil, fmt.Errorf("pull loop: PULL_CHUNK_SIZE is %d; use %d to %d", cfg.ChunkSize, minChunk, maxChunk)
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Budget = cmp.Or(cfg.Budget, time.Minute)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 32)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Loop{cfg: cfg, slots: make(chan struct{}, cfg.Concurrency)}, nil
}

// Run polls until ctx ends. A database that is away is asked again next round.
func (l *Loop) Run(ctx context.Context) error {
	defer l.turns.Wait()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		case <-l.cfg.Wake:
		}
		next.Reset(l.sweep(ctx))
	}
}

// runOnce polls what is due and returns when it is done.
func (l *Loop) runOnce(ctx context.Context) {
	l.sweep(ctx)
	l.turns.Wait()
}

// sweep starts a round of every workspace in which a source is due, and says when to
// look again. It does not wait: slow sources hold up their own workspace's next
// round and nobody else's.
func (l *Loop) sweep(ctx context.Context) (again time.Duration) {
	workspaces, nextIn, err := l.cfg.Sources.ReadySources(ctx)
	l.outage.Report(ctx, l.cfg.Log, "pull", err)
	for _, workspace := range workspaces {
		l.turns.Start(workspace, func() {
			if err := l.round(ctx, workspace); err != nil && ctx.Err() == nil {
				l.cfg.Log.WarnContext(ctx, "pull.round_failed", "workspace_id", workspace, "error", err)
			}
		})
	}
	switch {
	case len(workspaces) > 0:
		return lookLeast // what is due and was left, for the round before is not over
	case nextIn != nil:
		return min(max(*nextIn, lookLeast), l.cfg.Interval)
	default:
		return l.cfg.Interval
	}
}

// round polls what is due in one workspace, as one run, if anything is.
func (l *Loop) round(ctx context.Context, workspace string) error {
	due, err := l.due(ctx, workspace)
	if err != nil || len(due) == 0 {
		return err
	}
	started := time.Now()
	run, err := l.cfg.Runs.StartIngestRun(ctx, workspace, "pull", "", "")
	if err != nil {
		return fmt.Errorf("start ingest run ws=%s: %w", workspace, err)
	}
	var stats tally
	for range batchesPerRound {
		var group errgroup.Group
		for _, source := range due {
			group.Go(func() error {
				l.take(ctx, source, &stats)
				return nil
			})
		}
		_ = group.Wait()
		if len(due) < sourcesAtOnce || ctx.Err() != nil {
			break
		}
		// The sources already polled count even if there is no telling what is next.
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
	due, err := l.cfg.Sources.ListDueSources(ctx, workspace, sourcesAtOnce)
	if err != nil {
		return nil, fmt.Errorf("list due sources ws=%s: %w", workspace, err)
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
	if err := l.cfg.Runs.FinishIngestRun(ctx, workspace, run, raw); err != nil {
		return fmt.Errorf("finish ingest run ws=%s run=%s: %w", workspace, run, err)
	}
	return nil
}

// take polls one source and writes down how it went. Nothing that a source does
// reaches the others.
func (l *Loop) take(ctx context.Context, source Source, stats *tally) {
	select {
	case <-ctx.Done():
		return
	case l.slots <- struct{}{}:
	}
	defer func() { <-l.slots }()
	polled, err := l.poll(ctx, source)
	if ctx.Err() != nil && err != nil {
		return // stopping: the lease ends by itself
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
	case errors.Is(err, ErrUnavailable):
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
	recorded := l.cfg.Failures.FailPoll(ctx, source.WorkspaceID, source.SourceID, *failure)
	l.cfg.Log.WarnContext(ctx, "pull.source_failed", "workspace_id", source.WorkspaceID, "source_id", source.SourceID,
		"kind", source.Kind, "code", failure.Code, "message", failure.Message, "record_error", recorded)
}

// poll asks one source and hands over what it has.
func (l *Loop) poll(ctx context.Context, source Source) (polled counts, err error) {
	defer func() {
		// A document that makes a parser panic must cost its own source alone.
		if cause := recover(); cause != nil {
			err = &Failure{Code: "pull_panic", Message: fmt.Sprintf("the source made its parser panic: %v", cause)}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget)
	defer cancel()
	if source.EndpointID == nil {
		return polled, &Failure{Code: "pull_no_endpoint", Message: "the source has no enabled endpoint: autopost source set makes one, or enable that of kind pull_source with this source_id"}
	}
	fetcher, ok := l.cfg.Fetchers[source.Kind]
	if !ok {
		return polled, &Failure{Code: "pull_config", Message: fmt.Sprintf("kind %q is not served here", source.Kind)}
	}
	batch, err := fetcher.Fetch(ctx, source)
	if err != nil {
		return polled, err
	}
	crash.Here(crash.SourceFetched)
	if len(batch.Items) == 0 {
		return polled, l.setCursor(ctx, source, batch.Cursor)
	}
	for chunk := range slices.Chunk(batch.Items, l.cfg.ChunkSize) {
		if err := l.handOver(ctx, source, chunk, &polled); err != nil {
			return polled, err
		}
	}
	if batch.Incomplete != nil {
		return polled, batch.Incomplete
	}
	return polled, nil
}

// handOver commits one chunk and then moves the cursor behind it.
func (l *Loop) handOver(ctx context.Context, source Source, chunk []Item, polled *counts) error {
	raw, err := json.Marshal(chunk)
	if err != nil {
		return fmt.Errorf("encode chunk: %w", err)
	}
	crash.During(crash.InsideChunk)
	answer, err := l.cfg.Chunks.IngestPullChunk(ctx, source.WorkspaceID, source.SourceID, *source.EndpointID, raw)
	if err != nil {
		return fmt.Errorf("ingest pull chunk: %w", err)
	}
	crash.Here(crash.ChunkCommitted)
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
	if err := l.cfg.Chunks.SetPullCursor(ctx, source.WorkspaceID, source.SourceID, cursor); err != nil {
		return fmt.Errorf("set pull cursor: %w", err)
	}
	return nil
}

// counts are a round's stats_json.
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
