package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/worker"
)

// commit repeats the request until the lease ends: an accepted post whose commit is lost would be sent again. A
// stale answer is final, because another claim owns the delivery. It returns false if there was no answer.
func (d *Dispatcher) commit(p phases, a *attempt, res result) bool {
	var answer Commit
	stalled := false
	err := d.retryUntil(p.commit, a.leaseEnd, func() (err error) {
		failpoint.Within(failpoint.InsideCommit)
		answer, err = d.outcomes.Do(p.commit, claimKeyOf(a.Delivery), ClaimResult{a.DeliveryID, a.ClaimToken, res.outcome, res.raw != nil})
		if err != nil && !errors.Is(err, worker.ErrRefused) && !stalled {
			stalled = true
			d.inFlight.stall(a.WorkspaceID)
		}
		return err
	})
	if stalled {
		d.inFlight.resume(a.WorkspaceID)
	}
	failpoint.Hit(failpoint.Committed)
	d.keepRaw(a, answer, res.raw)
	a.record.Ended(a.Delivery, res.outcome, answer.Status, answer.Applied, err)
	d.deps.Recorder.Attempted(&a.record)
	d.logAttempt(a, res, answer, err)
	return err == nil
}

// keepRaw stores the raw payload that the commit has named. The commit does not wait for it.
func (d *Dispatcher) keepRaw(a *attempt, answer Commit, show func() json.RawMessage) {
	if answer.PayloadRef != "" && show != nil && d.deps.Raw != nil {
		d.deps.Raw.Keep(a.WorkspaceID, answer.PayloadRef, show)
	}
}

func (d *Dispatcher) commitBatch(ctx context.Context, key ClaimKey, results []ClaimResult) ([]Commit, error) {
	d.deps.Recorder.Batch("commit_outcome_batch", len(results))
	return d.deps.Store.CommitOutcomeBatch(ctx, key.WorkspaceID, results)
}

// logAttempt writes the one log line of an attempt.
func (d *Dispatcher) logAttempt(a *attempt, res result, answer Commit, err error) {
	level := slog.LevelInfo
	attrs := append(ids(a),
		"ok", res.outcome.OK,
		"outcome", answer.Status,
		"duration_ms", res.took.Milliseconds(),
		"slot_late_ms", res.late.Milliseconds(),
	)
	attrs = append(attrs, a.record.Fields()...)
	if res.outcome.OK {
		attrs = append(attrs, "provider_message_id", res.outcome.ProviderMessageID)
	}
	if e := res.outcome.Error; e != nil {
		level = slog.LevelWarn
		attrs = append(attrs, failureFields(e)...)
	}
	if a.verdict != "" {
		attrs = append(attrs, "reconciled", a.verdict)
	}
	if answer.NextRetryAt != nil {
		attrs = append(attrs, "next_retry_at", *answer.NextRetryAt)
	}
	switch {
	case err != nil:
		level = slog.LevelError
		attrs = append(attrs, "error", fmt.Errorf("commit outcome ws=%s delivery=%s: %w", a.WorkspaceID, a.DeliveryID, err))
	case !answer.Applied:
		level = slog.LevelWarn
		attrs = append(attrs, "refused", answer.Reason)
	}
	d.log.Log(context.Background(), level, "delivery.attempted", attrs...)
}

func ids(a *attempt) []any {
	return []any{
		"workspace_id", a.WorkspaceID,
		"delivery_id", a.DeliveryID,
		"message_id", a.MessageID,
		"channel_id", a.ChannelID,
		"platform", a.Platform,
		"trace_id", a.TraceID,
		"attempt", a.Attempt,
	}
}

func failureFields(e *autopost.Error) []any {
	return []any{"code", e.Code, "category", e.Category, "scope", e.Scope, "known", e.Known, "message", e.Message}
}

// unstarted collects the claims that were given up before their call started.
type unstarted struct {
	mu     sync.Mutex
	tokens map[string][]string
}

func (u *unstarted) add(a *attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens == nil {
		u.tokens = map[string][]string{}
	}
	u.tokens[a.WorkspaceID] = append(u.tokens[a.WorkspaceID], a.ClaimToken)
}

func (u *unstarted) byWorkspace() map[string][]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tokens
}

// release returns unstarted claims, so that another daemon gets them now and not after the lease. Nothing may be
// added to unstarted after that.
func (d *Dispatcher) release(ctx context.Context) {
	until := d.clock.now().add(d.cfg.Drain)
	for workspace, tokens := range d.unstarted.byWorkspace() {
		err := d.retryUntil(ctx, until, func() error {
			ctx, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			return d.deps.Store.ReleaseClaims(ctx, workspace, tokens)
		})
		if err != nil {
			d.log.Error("dispatch.release_failed", "workspace_id", workspace, "claims", len(tokens),
				"error", fmt.Errorf("release claims ws=%s: %w", workspace, err))
			continue
		}
		d.log.Info("dispatch.released", "workspace_id", workspace, "claims", len(tokens))
	}
}
