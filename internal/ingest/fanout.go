package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"autopost/internal/worker"
)

// Fanout is the result of run_fanout for one range of a job.
type Fanout struct {
	// Status is running, done, failed, busy or idle.
	Status string
	// JobID is "" if there was no job.
	JobID string `json:"job_id"`
	// Counts of the job so far.
	Planned, Enqueued, Deduped, Invalid, Skipped int
	// Error is the reason of a failed range.
	Error json.RawMessage
}

// FanoutConfig configures the fan-out worker. Store is required.
type FanoutConfig struct {
	Store Store
	// Wake starts a poll at once; nil means that only Interval does.
	Wake <-chan struct{}
	// Interval between polls if nothing wakes the worker; 10 s by default.
	Interval time.Duration
	// Concurrency is how many workspaces are processed at once; 2 by default.
	Concurrency int
	// Log is slog.Default() by default.
	Log *slog.Logger
}

// channelsPerRange is above every range: the setting in the database decides.
const channelsPerRange = 1_000_000

// FanoutWorker creates the deliveries of posts that go to more channels than one transaction should process. Each
// range is one transaction. The worker has no state, and any number of workers may run.
type FanoutWorker struct {
	cfg   FanoutConfig
	slots chan struct{}
	runs  worker.PerKey
}

// NewFanoutWorker checks the configuration and fills in its defaults.
func NewFanoutWorker(cfg FanoutConfig) (*FanoutWorker, error) {
	if cfg.Store == nil {
		return nil, errors.New("fan-out worker: a store is required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 10*time.Second)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 2)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &FanoutWorker{cfg: cfg, slots: make(chan struct{}, cfg.Concurrency)}, nil
}

// Run works until ctx ends.
func (w *FanoutWorker) Run(ctx context.Context) error {
	defer w.runs.Wait()
	return worker.Loop{Poll: w.poll, Interval: w.cfg.Interval, Wake: w.cfg.Wake, Log: w.cfg.Log, Name: "fanout"}.Run(ctx)
}

// runOnce processes what is ready and returns when that is done.
func (w *FanoutWorker) runOnce(ctx context.Context) {
	_, _ = w.poll(ctx)
	w.runs.Wait()
}

// poll starts the processing of every workspace that has a job. It does not wait for the end.
func (w *FanoutWorker) poll(ctx context.Context) (time.Duration, error) {
	workspaces, err := w.cfg.Store.ReadyFanoutWorkspaces(ctx, workspacesPerPoll)
	for _, workspace := range workspaces {
		w.runs.Start(ctx, workspace, func() {
			if err := w.process(ctx, workspace); err != nil && ctx.Err() == nil {
				w.cfg.Log.WarnContext(ctx, "fanout.interrupted", "workspace_id", workspace, "error", err)
			}
		})
	}
	return 0, err
}

// process runs the jobs of a workspace range by range. It returns its slot after each range, so workspaces alternate.
func (w *FanoutWorker) process(ctx context.Context, workspace string) error {
	for {
		result, err := w.next(ctx, workspace)
		if err != nil {
			return err
		}
		switch result.Status {
		case "running":
		case "done":
			w.cfg.Log.InfoContext(ctx, "fanout.done", "workspace_id", workspace, "job_id", result.JobID, "planned", result.Planned,
				"enqueued", result.Enqueued, "deduped", result.Deduped, "invalid", result.Invalid, "skipped", result.Skipped)
		case "failed":
			w.cfg.Log.ErrorContext(ctx, "fanout.deferred", "workspace_id", workspace, "job_id", result.JobID, "error", string(result.Error))
		default: // idle, or busy: another daemon processes the job
			return nil
		}
	}
}

// next processes one range while it holds a slot.
func (w *FanoutWorker) next(ctx context.Context, workspace string) (Fanout, error) {
	select {
	case <-ctx.Done():
		return Fanout{}, ctx.Err()
	case w.slots <- struct{}{}:
	}
	defer func() { <-w.slots }()
	result, err := w.cfg.Store.RunFanout(ctx, workspace, channelsPerRange)
	if err != nil {
		return Fanout{}, fmt.Errorf("run fanout ws=%s: %w", workspace, err)
	}
	return result, nil
}
