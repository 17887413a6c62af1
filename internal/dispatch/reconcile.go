package dispatch

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"autopost"
)

// reconcilePolicy is the on_unknown of a channel whose platform is asked before a post is sent again.
const reconcilePolicy = "reconcile"

// Verdicts of a platform about an earlier attempt.
const (
	verdictFound   = "found"
	verdictAbsent  = "absent"
	verdictUnknown = "unknown"
)

// reconcile asks the platform, after an unknown outcome, whether the delivery exists; ok means that all of it does.
// It acknowledges the steps that exist, and call continues behind them. If the platform has no copy, or does not
// know, the delivery is sent: the database has allowed that.
func (d *Dispatcher) reconcile(until *deadline, a *attempt, call *autopost.Call) (outcome autopost.Outcome, ok bool) {
	platform, can := a.adapter.(autopost.Reconciler)
	if !can || a.UnknownOutcomes == 0 || a.OnUnknown != reconcilePolicy {
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
	verdict := platform.Reconcile(until, asked)
	a.used = a.used.With(verdict.Used)
	switch {
	case verdict.Found:
		a.verdict = verdictFound
		return autopost.Sent(verdict.ProviderMessageID, time.Time{}, reconciled(verdict.Raw)), true
	case verdict.Absent:
		a.verdict = verdictAbsent
	default:
		a.verdict = verdictUnknown
		if verdict.Error != nil {
			d.log.Warn("delivery.not_reconciled", append(ids(a), "code", verdict.Error.Code, "message", verdict.Error.Message)...)
		}
	}
	until.renew(d.callTime(a))
	return autopost.Outcome{}, false
}

// reconciled marks the stored answer of a post that was found and not sent.
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
