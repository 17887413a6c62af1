package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"autopost/internal/recurrence"
	"autopost/internal/worker"
)

// DueRecurrence is a recurrence whose rule must be expanded. Its times are local, with the location UTC.
type DueRecurrence struct {
	RecurrenceID string
	// Revision changes with the rule: times of an old rule are refused.
	Revision int
	Rule     string
	StartsAt time.Time
	// After is exclusive, Until inclusive.
	After, Until time.Time
	// Most is the largest number of times.
	Most int
}

// RecurrenceStore is what the worker needs from the database.
type RecurrenceStore interface {
	// ReadyRecurrenceWorkspaces returns workspaces with a rule to expand or an occurrence to post.
	ReadyRecurrenceWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ListDueRecurrences returns recurrences whose rules must be expanded.
	ListDueRecurrences(ctx context.Context, workspace string, limit int) ([]DueRecurrence, error)
	// PutOccurrences stores an expansion, or the reason why there is none.
	PutOccurrences(ctx context.Context, workspace string, due DueRecurrence, found recurrence.Expansion, fault error) error
	// RunRecurrences makes posts of due occurrences; more means that others are due.
	RunRecurrences(ctx context.Context, workspace string) (ran int, more bool, err error)
}

// RecurrenceConfig configures the recurrence worker. Store is required.
type RecurrenceConfig struct {
	Store RecurrenceStore
	// Wake starts a poll at once; nil means that only Interval does.
	Wake <-chan struct{}
	// Interval between polls if nothing wakes the worker; 10 s by default.
	Interval time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

// expandedAtOnce is how many recurrences are expanded between two runs.
const expandedAtOnce = 20

// RecurrenceWorker expands the rules of posts that repeat, and lets the database make their posts. The worker has no
// state, and any number of workers may run.
type RecurrenceWorker struct{ cfg RecurrenceConfig }

// NewRecurrenceWorker checks the configuration and fills in its defaults.
func NewRecurrenceWorker(cfg RecurrenceConfig) (*RecurrenceWorker, error) {
	if cfg.Store == nil {
		return nil, errors.New("recurrence worker: a store is required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 10*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &RecurrenceWorker{cfg}, nil
}

// Run works until ctx ends.
func (w *RecurrenceWorker) Run(ctx context.Context) error {
	return worker.Loop{Poll: w.poll, Interval: w.cfg.Interval, Wake: w.cfg.Wake, Log: w.cfg.Log, Name: "recurrences"}.Run(ctx)
}

// poll processes all workspaces that have something to do.
func (w *RecurrenceWorker) poll(ctx context.Context) (time.Duration, error) {
	workspaces, err := w.cfg.Store.ReadyRecurrenceWorkspaces(ctx, workspacesPerPoll)
	for _, workspace := range workspaces {
		if err := w.process(ctx, workspace); err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "recurrences.interrupted", "workspace_id", workspace, "error", err)
		}
	}
	return 0, err
}

// process expands all due rules of a workspace first: only an expanded recurrence makes posts.
func (w *RecurrenceWorker) process(ctx context.Context, workspace string) error {
	for {
		due, err := w.cfg.Store.ListDueRecurrences(ctx, workspace, expandedAtOnce)
		if err != nil {
			return err
		}
		for _, d := range due {
			found, fault := recurrence.Expand(d.Rule, d.StartsAt, d.After, d.Until, d.Most)
			if fault != nil {
				w.cfg.Log.ErrorContext(ctx, "recurrences.rule_refused", "workspace_id", workspace, "recurrence_id", d.RecurrenceID, "error", fault)
			}
			if err := w.cfg.Store.PutOccurrences(ctx, workspace, d, found, fault); err != nil {
				return fmt.Errorf("recurrence %s: %w", d.RecurrenceID, err)
			}
		}
		if len(due) == 0 {
			break
		}
	}
	for {
		ran, more, err := w.cfg.Store.RunRecurrences(ctx, workspace)
		if err != nil {
			return err
		}
		if ran > 0 {
			w.cfg.Log.InfoContext(ctx, "recurrences.ran", "workspace_id", workspace, "recurrences", ran)
		}
		if !more {
			return nil
		}
	}
}
