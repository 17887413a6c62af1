package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/service"
)

const (
	// actsAtOnce bounds one claim.
	actsAtOnce = 50
	// codeNoAct: the adapter of this daemon does not do what the database says that the platform does.
	codeNoAct = "act_not_supported"
)

// Acts leases what is to be done to posts that were sent. StartAct and CommitAct may be
// repeated with the same token.
type Acts interface {
	// ReadyActWorkspaces names up to limit workspaces in which something is due.
	ReadyActWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ClaimActs leases up to limit due acts of a workspace to the run. None is a normal answer.
	ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.Act, error)
	StartAct(ctx context.Context, workspace, actID, claimToken string) (Start, error)
	// CommitAct records what the call came to; no failure is a success.
	CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error) (Commit, error)
}

// serveActs works on acts until a stop is asked for; those in hand are finished. What it
// cannot finish comes again when its lease is over: to do an act twice is to do it once.
func (d *Dispatcher) serveActs(l life) {
	defer d.turns.Wait()
	ticker := time.NewTicker(d.cfg.Poll)
	defer ticker.Stop()
	for {
		d.actRound(l)
		select {
		case <-l.run.Done():
			return
		case <-d.deps.ActsWake:
		case <-ticker.C:
		}
	}
}

func (d *Dispatcher) actRound(l life) {
	ctx, cancel := context.WithTimeout(l.run, queryTimeout)
	defer cancel()
	workspaces, err := d.deps.Acts.ReadyActWorkspaces(ctx, workspacesPerRound)
	d.outage.Report(l.run, d.log, "acts", err)
	for _, workspace := range workspaces {
		d.turns.Start(workspace, func() { d.actTurn(l, workspace) })
	}
}

// actTurn claims until nothing is left that can begin soon. The acts of a claim end before
// the next claim, so that posts of the same rate group have their share of it.
func (d *Dispatcher) actTurn(l life, workspace string) {
	for l.run.Err() == nil {
		asked := d.clock.now()
		acts, err := d.claimActs(l, workspace)
		if err != nil {
			d.log.Error("acts.claim_failed", "workspace_id", workspace, "error", fmt.Errorf("claim acts ws=%s: %w", workspace, err))
			return
		}
		if len(acts) == 0 {
			return
		}
		var inHand sync.WaitGroup
		for _, act := range acts {
			p := &pass{Delivery: act.Delivery, adapter: d.deps.Adapters[act.Platform], leaseEnd: asked.add(d.cfg.Lease)}
			inHand.Go(func() {
				defer d.lost.drop(act.Delivery)
				d.serveAct(l, p, act)
			})
		}
		inHand.Wait()
	}
}

// claimActs claims unless the workspace is stalled; the next look at it comes soon.
func (d *Dispatcher) claimActs(l life, workspace string) ([]autopost.Act, error) {
	if !d.room.openActs(workspace) {
		return nil, nil
	}
	defer d.room.closeActs(workspace)
	ctx, cancel := context.WithTimeout(l.call, queryTimeout)
	defer cancel()
	acts, err := d.deps.Acts.ClaimActs(ctx, workspace, d.cfg.RunID, actsAtOnce)
	if err != nil && !errors.Is(err, service.ErrRefused) {
		d.lost.miss(workspace)
	}
	for _, act := range acts {
		d.lost.hold(act.Delivery)
	}
	return acts, err
}

// serveAct takes a claimed act to its commit, unless the database takes it back.
func (d *Dispatcher) serveAct(l life, p *pass, act autopost.Act) {
	d.room.enter(p.Delivery)
	defer d.room.leave(p.Delivery)
	failure, begun := d.attemptAct(l, p, act)
	if !begun {
		return
	}
	if failure != nil {
		failure = checked(autopost.Failed(*failure)).Error
	}
	var answer Commit
	err := d.insist(l.settle, p.leaseEnd, func() error {
		ctx, cancel := context.WithTimeout(l.settle, queryTimeout)
		defer cancel()
		var err error
		answer, err = d.deps.Acts.CommitAct(ctx, p.WorkspaceID, act.ActID, p.ClaimToken, failure)
		return err
	})
	d.logAct(p, act, failure, answer, err)
}

// attemptAct makes the call of an act, if the database lets it begin.
func (d *Dispatcher) attemptAct(l life, p *pass, act autopost.Act) (failure *autopost.Error, begun bool) {
	if p.adapter == nil {
		e := noAdapter(p.Platform)
		return &e, true
	}
	secret, refusal := d.credential(l, p)
	if refusal != nil {
		return refusal, true
	}
	if !d.beginAct(l, p, act) {
		return nil, false
	}
	if d.callTime(p) <= 0 {
		e := tooLate()
		return &e, true
	}
	limit := newLimit(l.call, d.clock, d.callTime(p))
	defer limit.end()
	failure = d.act(limit, p, act, secret)
	renewed, refusal := d.renew(limit, p, secret, failure)
	switch {
	case refusal != nil:
		return refusal, true
	case !renewed.IsZero():
		limit.renew(d.callTime(p))
		return d.act(limit, p, act, renewed), true
	}
	return failure, true
}

// beginAct waits for the slot of an act; who is late for it asks for another. True
// means: the call is to be made now. It asks until it is answered, as for a delivery.
func (d *Dispatcher) beginAct(l life, p *pass, act autopost.Act) bool {
	for range startTries {
		var start Start
		var asked moment
		err := d.insist(l.run, p.leaseEnd.add(-d.cfg.margin()), func() (err error) {
			ctx, cancel := context.WithTimeout(l.call, queryTimeout)
			defer cancel()
			asked = d.clock.now()
			start, err = d.deps.Acts.StartAct(ctx, p.WorkspaceID, act.ActID, p.ClaimToken)
			return err
		})
		if err != nil || !start.Applied {
			d.log.Info("act.not_started", append(actIDs(p, act), "reason", start.Reason, "error", err)...)
			return false
		}
		p.leaseEnd = asked.add(start.Deadline)
		if !sleep(l.call, start.SendIn) {
			return false
		}
		if !start.Limited || d.clock.since(asked)-start.SendIn <= slotTolerance {
			return true
		}
	}
	return false
}

// act lets the adapter speak.
func (d *Dispatcher) act(limit *limit, p *pass, act autopost.Act, secret autopost.Secret) (failure *autopost.Error) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold a URL with a token; its type and the stack do not.
			kind := fmt.Sprintf("%T", v)
			d.log.Error("act.adapter_panicked", append(actIDs(p, act), "panic", kind, "stack", string(debug.Stack()))...)
			e := unknown("the adapter panicked: " + kind)
			failure = &e
		}
	}()
	ctx := outbound.Fenced(limit, limit.open)
	call := autopost.Call{Delivery: p.Delivery, Secret: secret, Media: d.deps.Media.MaterialsFor(p.Delivery)}
	editor, edits := p.adapter.(autopost.Editor)
	deleter, deletes := p.adapter.(autopost.Deleter)
	pinner, pins := p.adapter.(autopost.Pinner)
	switch {
	case act.Kind == autopost.ActEdit && edits:
		return editor.Edit(ctx, call)
	case act.Kind == autopost.ActDelete && deletes:
		return deleter.Delete(ctx, call)
	case act.Kind == autopost.ActPin && pins:
		return pinner.Pin(ctx, call)
	case act.Kind == autopost.ActUnpin && pins:
		return pinner.Unpin(ctx, call)
	}
	return &autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeNoAct, Known: true,
		Message: fmt.Sprintf("the adapter of %q does not %s", p.Platform, act.Kind),
	}
}

func (d *Dispatcher) logAct(p *pass, act autopost.Act, failure *autopost.Error, answer Commit, err error) {
	level := slog.LevelInfo
	attrs := append(actIDs(p, act), "ok", failure == nil, "outcome", answer.Status)
	if failure != nil {
		level = slog.LevelWarn
		attrs = append(attrs, "code", failure.Code, "category", failure.Category, "scope", failure.Scope, "known", failure.Known, "message", failure.Message)
	}
	switch {
	case err != nil:
		level = slog.LevelError
		attrs = append(attrs, "error", fmt.Errorf("commit act ws=%s act=%s: %w", p.WorkspaceID, act.ActID, err))
	case !answer.Applied:
		level = slog.LevelWarn
		attrs = append(attrs, "refused", answer.Reason)
	}
	d.log.Log(context.Background(), level, "act.attempted", attrs...)
}

func actIDs(p *pass, act autopost.Act) []any {
	return append(ids(p), "act_id", act.ActID, "kind", act.Kind)
}
