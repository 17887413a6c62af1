package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/worker"
)

const (
	// maxChanges bounds one claim of post changes.
	maxChanges = 50
	// codeNoAct: the adapter of this daemon lacks a change that the database expects of the platform.
	codeNoAct = "act_not_supported"
)

// pollChanges starts a worker for each workspace with due post changes. A change that a stop interrupts is claimed
// again after its lease: applying it twice has the same result as once.
func (d *Dispatcher) pollChanges(p phases) error {
	ctx, cancel := context.WithTimeout(p.run, queryTimeout)
	defer cancel()
	workspaces, err := d.deps.Store.ReadyActWorkspaces(ctx, workspacesPerPoll)
	for _, workspace := range workspaces {
		d.changes.Start(p.run, workspace, func() { d.applyChanges(p, workspace) })
	}
	return err
}

// applyChanges claims until no change is due. The changes of a claim end before the next claim, so that posts of
// the same rate group get their share.
func (d *Dispatcher) applyChanges(p phases, workspace string) {
	for p.run.Err() == nil {
		asked := d.clock.now()
		changes, err := d.claimChanges(p, workspace)
		if err != nil {
			d.log.Error("acts.claim_failed", "workspace_id", workspace, "error", fmt.Errorf("claim acts ws=%s: %w", workspace, err))
			return
		}
		if len(changes) == 0 {
			return
		}
		var running sync.WaitGroup
		for _, change := range changes {
			a := &attempt{
				Delivery: change.Delivery,
				adapter:  d.deps.Adapters[change.Platform],
				leaseEnd: asked.add(d.cfg.Lease),
				ask:      func(ctx context.Context) (started, error) { return d.startChange(ctx, change) },
			}
			running.Go(worker.Task(p.run, func() {
				defer d.lostClaims.held.Drop(change.WorkspaceID, change.ClaimToken)
				d.applyChange(p, a, change)
			}))
		}
		running.Wait()
	}
}

// claimChanges returns nothing if the workspace is stalled; the next poll follows soon.
func (d *Dispatcher) claimChanges(p phases, workspace string) ([]autopost.PostChange, error) {
	if !d.inFlight.beginChangeClaim(workspace) {
		return nil, nil
	}
	defer d.inFlight.endChangeClaim(workspace)
	ctx, cancel := context.WithTimeout(p.call, queryTimeout)
	defer cancel()
	changes, err := d.deps.Store.ClaimActs(ctx, workspace, d.cfg.RunID, maxChanges)
	if err != nil && !errors.Is(err, worker.ErrRefused) {
		d.lostClaims.miss(workspace)
	}
	for _, change := range changes {
		d.lostClaims.held.Hold(change.WorkspaceID, change.ClaimToken)
	}
	return changes, err
}

// applyChange takes a claimed change to its commit, unless the database releases the claim.
func (d *Dispatcher) applyChange(p phases, a *attempt, change autopost.PostChange) {
	d.inFlight.add(a.Delivery)
	defer d.inFlight.remove(a.Delivery)
	failure, started := d.attemptChange(p, a, change)
	if !started {
		return
	}
	if failure != nil {
		failure = checked(autopost.Failed(*failure)).Error
	}
	raw := a.answer.Show()
	if failure == nil {
		raw = nil
	}
	var answer Commit
	err := d.retryUntil(p.commit, a.leaseEnd, func() error {
		ctx, cancel := context.WithTimeout(p.commit, queryTimeout)
		defer cancel()
		var err error
		answer, err = d.deps.Store.CommitAct(ctx, a.WorkspaceID, change.ActID, a.ClaimToken, failure, raw != nil)
		return err
	})
	d.keepRaw(a, answer, raw)
	d.logChange(a, change, failure, answer, err)
}

// attemptChange makes the call of a change if the database allows its start.
func (d *Dispatcher) attemptChange(p phases, a *attempt, change autopost.PostChange) (failure *autopost.Error, started bool) {
	if a.adapter == nil {
		e := noAdapter(a.Platform)
		return &e, true
	}
	secret, failure := d.credential(p, a)
	if failure != nil {
		return failure, true
	}
	start, _, err := d.begin(p, a)
	if err != nil {
		d.log.Warn("act.start_unanswered", append(changeIDs(a, change), "error", err)...)
		e := notCalled()
		return &e, true
	}
	if !start.Applied {
		d.log.Info("act.not_started", append(changeIDs(a, change), "reason", start.Reason)...)
		return nil, false
	}
	if d.callTime(a) <= 0 {
		e := tooLate()
		return &e, true
	}
	until := newDeadline(p.call, d.clock, d.callTime(a))
	defer until.end()
	failure = d.sendChange(until, a, change, secret)
	renewed, renewal := d.renew(until, a, secret, failure)
	switch {
	case renewal != nil:
		return renewal, true
	case !renewed.IsZero():
		until.renew(d.callTime(a))
		return d.sendChange(until, a, change, renewed), true
	}
	return failure, true
}

// startChange asks once for the start record of a change.
func (d *Dispatcher) startChange(ctx context.Context, change autopost.PostChange) (started, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	asked := d.clock.now()
	start, err := d.deps.Store.StartAct(ctx, change.Delivery.WorkspaceID, change.ActID, change.Delivery.ClaimToken)
	return started{start, asked}, err
}

// sendChange calls the adapter once. A panic of the adapter is an unknown outcome.
func (d *Dispatcher) sendChange(until *deadline, a *attempt, change autopost.PostChange, secret autopost.Secret) (failure *autopost.Error) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold a URL with a token; its type and the stack do not.
			kind := fmt.Sprintf("%T", v)
			d.log.Error("act.adapter_panicked", append(changeIDs(a, change), "panic", kind, "stack", string(debug.Stack()))...)
			e := unknown("the adapter panicked: " + kind)
			failure = &e
		}
	}()
	ctx, kept := outbound.WithLastAnswer(outbound.WithSendCheck(until, until.allow))
	a.answer = kept
	call := autopost.Call{Delivery: a.Delivery, Secret: secret, Media: d.deps.Media.MaterialsFor(a.Delivery)}
	editor, edits := a.adapter.(autopost.Editor)
	deleter, deletes := a.adapter.(autopost.Deleter)
	pinner, pins := a.adapter.(autopost.Pinner)
	switch {
	case change.Kind == autopost.ChangeEdit && edits:
		return editor.Edit(ctx, call)
	case change.Kind == autopost.ChangeDelete && deletes:
		return deleter.Delete(ctx, call)
	case change.Kind == autopost.ChangePin && pins:
		return pinner.Pin(ctx, call)
	case change.Kind == autopost.ChangeUnpin && pins:
		return pinner.Unpin(ctx, call)
	}
	return &autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeNoAct, Known: true,
		Message: fmt.Sprintf("the adapter of %q does not %s", a.Platform, change.Kind),
	}
}

func (d *Dispatcher) logChange(a *attempt, change autopost.PostChange, failure *autopost.Error, answer Commit, err error) {
	level := slog.LevelInfo
	attrs := append(changeIDs(a, change), "ok", failure == nil, "outcome", answer.Status)
	if failure != nil {
		level = slog.LevelWarn
		attrs = append(attrs, failureFields(failure)...)
	}
	switch {
	case err != nil:
		level = slog.LevelError
		attrs = append(attrs, "error", fmt.Errorf("commit act ws=%s act=%s: %w", a.WorkspaceID, change.ActID, err))
	case !answer.Applied:
		level = slog.LevelWarn
		attrs = append(attrs, "refused", answer.Reason)
	}
	d.log.Log(context.Background(), level, "act.attempted", attrs...)
}

func changeIDs(a *attempt, change autopost.PostChange) []any {
	return append(ids(a), "act_id", change.ActID, "kind", change.Kind)
}
