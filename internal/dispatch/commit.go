package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"autopost/internal/crash"
	"autopost/internal/service"
)

// commit records the outcome, for as long as the lease lives: an accepted post
// whose commit is lost would be sent again. A stale answer is never repeated,
// another claim owns the delivery.
func (d *Dispatcher) commit(l life, p *pass, rep report) {
	var answer Commit
	stalled := false
	err := d.insist(l.settle, p.leaseEnd, func() (err error) {
		crash.During(crash.InsideCommit)
		answer, err = d.outcomes.Do(l.settle, partOf(p.Delivery), Settlement{p.DeliveryID, p.ClaimToken, rep.outcome})
		if err != nil && !errors.Is(err, service.ErrRefused) && !stalled {
			stalled = true
			d.room.stall(p.WorkspaceID)
		}
		return err
	})
	if stalled {
		d.room.resume(p.WorkspaceID)
	}
	crash.Here(crash.Committed)
	p.seen.Ended(p.Delivery, rep.outcome, answer.Status, answer.Applied, err)
	d.deps.Watch.Attempted(&p.seen)
	d.logAttempt(p, rep, answer, err)
}

// commitBatch records outcomes of a part.
func (d *Dispatcher) commitBatch(ctx context.Context, in Part, settlements []Settlement) ([]Commit, error) {
	return d.deps.Commits.CommitOutcomeBatch(ctx, in.WorkspaceID, settlements)
}

// logAttempt writes the one line that tells an attempt's whole story.
func (d *Dispatcher) logAttempt(p *pass, rep report, answer Commit, err error) {
	level := slog.LevelInfo
	attrs := append(ids(p),
		"ok", rep.outcome.OK,
		"outcome", answer.Status,
		"duration_ms", rep.took.Milliseconds(),
		"slot_late_ms", rep.late.Milliseconds(),
	)
	attrs = append(attrs, p.seen.Fields()...)
	if rep.outcome.OK {
		attrs = append(attrs, "provider_message_id", rep.outcome.ProviderMessageID)
	}
	if e := rep.outcome.Error; e != nil {
		level = slog.LevelWarn
		attrs = append(attrs, "code", e.Code, "category", e.Category, "scope", e.Scope, "known", e.Known, "message", e.Message)
	}
	if p.verdict != "" {
		attrs = append(attrs, "reconciled", p.verdict)
	}
	if answer.NextRetryAt != nil {
		attrs = append(attrs, "next_retry_at", *answer.NextRetryAt)
	}
	switch {
	case err != nil:
		level = slog.LevelError
		attrs = append(attrs, "error", fmt.Errorf("commit outcome ws=%s delivery=%s: %w", p.WorkspaceID, p.DeliveryID, err))
	case !answer.Applied:
		level = slog.LevelWarn
		attrs = append(attrs, "refused", answer.Reason)
	}
	d.log.Log(context.Background(), level, "delivery.attempted", attrs...)
}

func ids(p *pass) []any {
	return []any{
		"workspace_id", p.WorkspaceID,
		"delivery_id", p.DeliveryID,
		"message_id", p.MessageID,
		"channel_id", p.ChannelID,
		"platform", p.Platform,
		"trace_id", p.TraceID,
		"attempt", p.Attempt,
	}
}

// unsent collects the claims that were given up before their call began.
type unsent struct {
	mu     sync.Mutex
	tokens map[string][]string
}

func (u *unsent) add(p *pass) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens == nil {
		u.tokens = map[string][]string{}
	}
	u.tokens[p.WorkspaceID] = append(u.tokens[p.WorkspaceID], p.ClaimToken)
}

func (u *unsent) byWorkspace() map[string][]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tokens
}

// handBack returns what was claimed and not started, so that another daemon can
// have it now and not when the lease is over. Nothing may be added any more.
func (d *Dispatcher) handBack(ctx context.Context) {
	until := d.clock.now().add(d.cfg.Drain)
	for workspace, tokens := range d.unsent.byWorkspace() {
		err := d.insist(ctx, until, func() error {
			ctx, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			return d.deps.Commits.ReleaseClaims(ctx, workspace, tokens)
		})
		if err != nil {
			d.log.Error("dispatch.hand_back_failed", "workspace_id", workspace, "claims", len(tokens),
				"error", fmt.Errorf("release claims ws=%s: %w", workspace, err))
			continue
		}
		d.log.Info("dispatch.handed_back", "workspace_id", workspace, "claims", len(tokens))
	}
}
