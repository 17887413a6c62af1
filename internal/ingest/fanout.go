package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"autopost/internal/service"
)

// Fanout is what one range of a fan-out job came to: the answer of run_fanout.
type Fanout struct {
	// Status is running, done, failed, busy or idle.
	Status string
	// JobID names the job; "" when there was none.
	JobID string
	// Counts of the job so far.
	Planned, Enqueued, Deduped, Invalid, Skipped int
	// Error is what kept the range from being worked off.
	Error json.RawMessage
}

// FanoutJobs is what the fan-out worker needs of the database.
type FanoutJobs interface {
	// ReadyFanoutWorkspaces names workspaces that have a job to go on with.
	ReadyFanoutWorkspaces(ctx context.Context, limit int) ([]string, error)
	// RunFanout works off the next range of a workspace's oldest job, of at most limit channels.
	RunFanout(ctx context.Context, workspace string, limit int) (Fanout, error)
}

// FanoutConfig is what the fan-out worker needs. Jobs is required.
type FanoutConfig struct {
	Jobs FanoutJobs
	// Wake starts a round at once; nil = only the interval does.
	Wake <-chan struct{}
	// Interval between rounds when nobody wakes the worker; 10 s, which does without anybody to.
	Interval time.Duration
	// Concurrency is how many workspaces are worked on at once; 2.
	Concurrency int
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// channelsPerRange is more than any range has: the database's setting decides.
const channelsPerRange = 1_000_000

// FanoutWorker works off the posts that go to more channels than one transaction
// should take. Each range is one call and one transaction; the worker keeps no
// state, and any number of them may run.
type FanoutWorker struct {
	cfg    FanoutConfig
	slots  chan struct{}
	turns  service.Turns
	outage service.Outage
}

// NewFanoutWorker checks the configuration and fills in its defaults.
func NewFanoutWorker(cfg FanoutConfig) (*FanoutWorker, error) {
	if cfg.Jobs == nil {
		return nil, errors.New("fan-out worker: jobs are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 10*time.Second)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 2)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &FanoutWorker{cfg: cfg, slots: make(chan struct{}, cfg.Concurrency)}, nil
}

// Run works until ctx ends. A database that is away is asked again next round.
func (w *FanoutWorker) Run(ctx context.Context) error {
	defer w.turns.Wait()
	ticker := time.NewTicker(w.cfg.Interval)
	defer ticker.Stop()
	for {
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-w.cfg.Wake:
		case <-ticker.C:
		}
	}
}

// runOnce works off what is ready and returns when it is done.
func (w *FanoutWorker) runOnce(ctx context.Context) {
	w.sweep(ctx)
	w.turns.Wait()
}

func (w *FanoutWorker) sweep(ctx context.Context) {
	workspaces, err := w.cfg.Jobs.ReadyFanoutWorkspaces(ctx, workspacesPerRound)
	w.outage.Report(ctx, w.cfg.Log, "fanout", err)
	for _, workspace := range workspaces {
		w.turns.Start(workspace, func() {
			if err := w.turn(ctx, workspace); err != nil && ctx.Err() == nil {
				w.cfg.Log.WarnContext(ctx, "fanout.interrupted", "workspace_id", workspace, "error", err)
			}
		})
	}
}

// turn works off a workspace's jobs range by range. The slot is given back after
// each, so that workspaces take turns.
func (w *FanoutWorker) turn(ctx context.Context, workspace string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w.slots <- struct{}{}:
		}
		went, err := w.cfg.Jobs.RunFanout(ctx, workspace, channelsPerRange)
		<-w.slots
		if err != nil {
			return fmt.Errorf("run fanout ws=%s: %w", workspace, err)
		}
		switch went.Status {
		case "running":
		case "done":
			w.cfg.Log.InfoContext(ctx, "fanout.done", "workspace_id", workspace, "job_id", went.JobID, "planned", went.Planned,
				"enqueued", went.Enqueued, "deduped", went.Deduped, "invalid", went.Invalid, "skipped", went.Skipped)
		case "failed":
			w.cfg.Log.ErrorContext(ctx, "fanout.put_off", "workspace_id", workspace, "job_id", went.JobID, "error", string(went.Error))
		default: // idle, or another daemon is at it
			return nil
		}
	}
}
