package dispatch

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"autopost"
)

// reconcilePolicy is the on_unknown of a channel whose platform is asked before a post goes out again.
const reconcilePolicy = "reconcile"

// What a platform that was asked has said.
const (
	verdictFound   = "found"
	verdictAbsent  = "absent"
	verdictUnknown = "unknown"
)

// reconcile asks the platform, after an outcome that nobody knows, whether it has the
// delivery; ok says that it has all of it. Steps that it turns out to have are
// acknowledged, and call goes on after them. What is absent, or cannot be told, is
// sent: that it may be was decided in the database.
func (d *Dispatcher) reconcile(limit *limit, p *pass, call *autopost.Call) (outcome autopost.Outcome, ok bool) {
	platform, can := p.adapter.(autopost.Reconciler)
	if !can || p.UnknownOutcomes == 0 || p.OnUnknown != reconcilePolicy {
		return autopost.Outcome{}, false
	}
	asked := *call
	asked.Emit = func(ctx context.Context, step autopost.Acknowledged) error {
		if err := call.Emit(ctx, step); err != nil {
			return err
		}
		progress := &call.Delivery.RenderMeta.Progress
		steps := map[string][]string{step.Step: step.IDs}
		maps.Copy(steps, progress.Steps)
		progress.Steps = steps
		return nil
	}
	verdict := platform.Reconcile(limit, asked)
	p.used = p.used.With(verdict.Used)
	switch {
	case verdict.Found:
		p.verdict = verdictFound
		return autopost.Sent(verdict.ProviderMessageID, time.Time{}, reconciled(verdict.Raw)), true
	case verdict.Absent:
		p.verdict = verdictAbsent
	default:
		p.verdict = verdictUnknown
		if verdict.Error != nil {
			d.log.Warn("delivery.not_reconciled", append(ids(p), "code", verdict.Error.Code, "message", verdict.Error.Message)...)
		}
	}
	limit.renew(d.callTime(p))
	return autopost.Outcome{}, false
}

// reconciled marks what is kept of a post that was found and not sent.
func reconciled(raw json.RawMessage) json.RawMessage {
	var kept map[string]json.RawMessage
	if json.Unmarshal(raw, &kept) != nil || kept == nil {
		kept = map[string]json.RawMessage{}
	}
	kept["reconciled"] = json.RawMessage("true")
	out, err := json.Marshal(kept)
	if err != nil {
		return json.RawMessage(`{"reconciled":true}`)
	}
	return out
}
