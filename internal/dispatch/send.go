package dispatch

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/outbound"
	"autopost/internal/worker"
)

// call uses the adapter until it is done or its time is over. If the platform refuses the credential only, call
// sends again with a renewed one. It repeats that as long as each secret was accepted for a while: a long upload
// outlives several.
func (d *Dispatcher) call(ctx context.Context, a *attempt, secret autopost.Secret) autopost.Outcome {
	if d.callTime(a) <= 0 {
		return autopost.Failed(tooLate())
	}
	until := newDeadline(ctx, d.clock, d.callTime(a))
	defer until.end()
	for again := false; ; again = true {
		a.accepted = false
		outcome := d.send(ctx, a, secret, until)
		if again && !a.accepted {
			return outcome
		}
		renewed, failure := d.renew(until, a, secret, outcome.Error)
		switch {
		case failure != nil:
			return autopost.Failed(*failure)
		case renewed.IsZero():
			return outcome
		}
		secret = renewed
		until.renew(d.callTime(a))
	}
}

// send calls the adapter once. A panic of the adapter is an unknown outcome.
func (d *Dispatcher) send(ctx context.Context, a *attempt, secret autopost.Secret, until *deadline) (outcome autopost.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold a URL with a token; its type and the stack do not.
			kind := fmt.Sprintf("%T", v)
			d.log.Error("delivery.adapter_panicked", append(ids(a), "panic", kind, "stack", string(debug.Stack()))...)
			outcome = autopost.Failed(unknown("the adapter panicked: " + kind))
		}
	}()
	call := autopost.Call{
		Delivery: a.Delivery,
		Secret:   secret,
		Media:    a.record.Weigh(d.deps.Media.MaterialsFor(a.Delivery)),
		Emit: func(_ context.Context, step autopost.Acknowledged) error {
			return until.during(func() error { return d.acknowledge(ctx, a, step, until) })
		},
		Renew: func(context.Context) error {
			return until.during(func() error { return d.extendCall(ctx, a, until) })
		},
	}
	if found, ok := d.reconcile(until, a, &call); ok {
		return checked(found)
	}
	ctx, a.answer = outbound.WithLastAnswer(outbound.WithSendCheck(until, until.allow))
	outcome = checked(a.adapter.Send(ctx, call))
	a.used = a.used.With(outcome.Used)
	return outcome
}

// callTime is the time for one call, or for the next step.
func (d *Dispatcher) callTime(a *attempt) time.Duration {
	return min(d.cfg.AdapterTimeout, d.clock.until(a.leaseEnd)-d.cfg.margin())
}

// acknowledge records a step, renews the lease if half of it is spent, and waits for the slot of the next step. If
// that slot is missed, it asks for another: a step that is recorded twice changes only the slot.
func (d *Dispatcher) acknowledge(ctx context.Context, a *attempt, step autopost.Acknowledged, until *deadline) error {
	failpoint.Hit(failpoint.StepAcknowledged)
	for range startTries {
		progress, asked, err := d.recordStep(ctx, a, step)
		if err != nil {
			return err
		}
		answered := d.clock.now()
		if err := d.keepLease(ctx, a, max(0, progress.SendIn)); err != nil {
			return err
		}
		if !worker.Sleep(until, progress.SendIn-d.clock.since(answered)) {
			return fmt.Errorf("wait for the step after %s of delivery %s: %w", step.Step, a.DeliveryID, until.Err())
		}
		if !progress.Limited || d.clock.since(asked)-progress.SendIn <= slotTolerance {
			break
		}
	}
	until.renew(d.callTime(a))
	return nil
}

// recordStep stores a step that the platform acknowledged. It also returns the instant of the answered request.
func (d *Dispatcher) recordStep(ctx context.Context, a *attempt, step autopost.Acknowledged) (Progress, instant, error) {
	var progress Progress
	var asked instant
	err := d.retryUntil(ctx, a.leaseEnd.add(-d.cfg.margin()), func() error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		asked = d.clock.now()
		var err error
		progress, err = d.deps.Store.RecordSeriesProgress(ctx, a.WorkspaceID, a.DeliveryID, a.ClaimToken, step)
		return err
	})
	if err != nil {
		return Progress{}, asked, fmt.Errorf("record step %s of delivery %s: %w", step.Step, a.DeliveryID, err)
	}
	if !progress.Applied {
		return Progress{}, asked, fmt.Errorf("record step %s of delivery %s: refused: %s", step.Step, a.DeliveryID, progress.Reason)
	}
	failpoint.Hit(failpoint.BetweenSteps)
	if !a.RenderMeta.Progress.Done(step.Step) {
		a.RenderMeta.Progress = a.RenderMeta.Progress.With(step)
	}
	a.accepted = true
	return progress, asked, nil
}

// extendCall gives a step that continues the time of another call.
func (d *Dispatcher) extendCall(ctx context.Context, a *attempt, until *deadline) error {
	a.accepted = true
	if err := d.keepLease(ctx, a, 0); err != nil {
		return err
	}
	until.renew(d.callTime(a))
	return nil
}

// keepLease renews the lease if less than half of it will be left when the call continues.
func (d *Dispatcher) keepLease(ctx context.Context, a *attempt, continuesIn time.Duration) error {
	if d.clock.until(a.leaseEnd) >= d.cfg.Lease/2+continuesIn {
		return nil
	}
	return d.extendLease(ctx, a, d.cfg.Lease+continuesIn)
}

func (d *Dispatcher) extendLease(ctx context.Context, a *attempt, by time.Duration) error {
	seconds := int(math.Ceil(by.Seconds()))
	var applied bool
	err := d.retryUntil(ctx, a.leaseEnd.add(-d.cfg.margin()), func() error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		asked := d.clock.now()
		var err error
		applied, err = d.deps.Store.ExtendLease(ctx, a.WorkspaceID, a.DeliveryID, a.ClaimToken, seconds)
		if err == nil && applied {
			a.leaseEnd = asked.add(time.Duration(seconds) * time.Second)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("extend lease of delivery %s: %w", a.DeliveryID, err)
	}
	if !applied {
		return fmt.Errorf("extend lease of delivery %s: refused: the claim is no longer ours", a.DeliveryID)
	}
	return nil
}
