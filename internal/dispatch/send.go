package dispatch

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"autopost"
	"autopost/internal/crash"
	"autopost/internal/outbound"
	"autopost/internal/telemetry"
)

const (
	// startLead is how long before its slot a delivery asks to start: about one
	// trip to the database.
	startLead = 5 * time.Millisecond
	// slotHorizon is how far ahead the database reserves a slot. It bounds the wait
	// by our clock, which may be wrong by days: start_call knows the true time.
	slotHorizon = time.Second
	// slotTolerance is how late a first byte may be before its slot is void.
	slotTolerance = 100 * time.Millisecond
	startTries    = 3
)

// pass is one claimed delivery on its way through this daemon.
type pass struct {
	autopost.Delivery
	adapter autopost.Adapter
	// leaseEnd is by our clocks, read before the database was asked: never later than
	// the lease's true end.
	leaseEnd moment
	// decided is called once the call has begun or has been given up.
	decided func()
	// asked counts how often it was asked whether the call may begin.
	asked int
	// verdict is what the platform said about an earlier attempt, "" when it was not asked.
	verdict string
	// moved says that the present secret was good for a step, or for a part of one.
	moved bool
	// used is what the attempt took of the platform that has a price of its own, whatever came of it.
	used autopost.Used
	// seen is what is told of the attempt when it is over.
	seen telemetry.Attempt
}

// untilSlot is how long the delivery has to wait before it asks to start.
func (p *pass) untilSlot() time.Duration {
	if p.SendAt == nil {
		return 0
	}
	return min(time.Until(*p.SendAt)-startLead, slotHorizon)
}

// report is what one attempt came to, for the commit and the log.
type report struct {
	outcome autopost.Outcome
	// took is the time of the adapter's call, late how much after its slot it began.
	took, late time.Duration
}

// deliver takes a claimed delivery to its commit, or hands it back.
func (d *Dispatcher) deliver(l life, p *pass) {
	defer d.room.leave(p.Delivery)
	defer p.decided()
	defer d.deps.Watch.InHand()()
	if p.adapter == nil {
		d.commit(l, p, report{outcome: autopost.Failed(noAdapter(p.Platform))})
		return
	}
	if !sleep(l.run, p.untilSlot()) {
		d.unsent.add(p)
		return
	}
	rep, end := d.attempt(l, p)
	switch end {
	case ended:
		d.commit(l, p, rep)
	case abandoned:
		d.unsent.add(p)
	case refused:
	}
}

// ending says what is left to do for a delivery after its attempt.
type ending int

const (
	ended     ending = iota // there is an outcome to commit
	abandoned               // never started: to be handed back
	refused                 // the database has taken it back
)

// attempt makes the call, if the database lets it begin.
func (d *Dispatcher) attempt(l life, p *pass) (report, ending) {
	secret, refusal := d.credential(l, p)
	if refusal != nil {
		return report{outcome: autopost.Failed(*refusal)}, ended
	}
	if l.run.Err() != nil {
		return report{}, abandoned
	}
	p.seen.Asked = time.Now()
	start, late, err := d.begin(l, p)
	p.decided()
	d.deps.Watch.Started(start.Applied, start.Reason, err)
	if err != nil {
		d.log.Warn("delivery.start_unanswered", append(ids(p), "error", err)...)
		return report{outcome: autopost.Failed(notCalled())}, ended
	}
	if !start.Applied {
		d.log.Info("delivery.not_started", append(ids(p), "reason", start.Reason)...)
		return report{}, refused
	}
	crash.Here(crash.Started)
	began := time.Now()
	outcome := d.call(l.call, p, secret)
	crash.Here(crash.ReplyRead)
	outcome.Used = p.used
	p.seen.Called(began, late, start.Limited)
	return report{outcome: outcome, took: time.Since(began), late: late}, ended
}

// begin records the start and waits for the slot. A start that this daemon then
// missed is asked for again, so that it gets a slot of its own.
func (d *Dispatcher) begin(l life, p *pass) (Start, time.Duration, error) {
	var late time.Duration
	var start started
	for range startTries {
		var err error
		start, err = d.start(l, p)
		if err != nil || !start.Applied || !start.Limited {
			return start.Start, 0, err
		}
		sleep(l.call, d.untilStart(p, start.Start))
		// The database read its clock after it was asked, so this is the most that it can be late.
		if late = d.clock.since(start.asked) - start.SendIn; late <= slotTolerance {
			break
		}
	}
	return start.Start, late, nil
}

// untilStart is how long to wait for the slot of a start. The slot of a claim is no further
// ahead than the horizon; one that seems to be is from before the database's clock was put
// back. Who asked again and was late has got another, however far ahead; it is waited for
// as long as the lease lives.
func (d *Dispatcher) untilStart(p *pass, start Start) time.Duration {
	if p.asked > 1 {
		return min(start.SendIn, d.clock.until(p.leaseEnd))
	}
	return min(start.SendIn, slotHorizon)
}

// start asks until it is answered: a start that was committed and not answered
// would, left alone, be taken for a call with an unknown outcome.
func (d *Dispatcher) start(l life, p *pass) (started, error) {
	var start started
	err := d.insist(l.run, p.leaseEnd.add(-d.cfg.margin()), func() (err error) {
		p.asked++
		start, err = d.starts.Do(l.call, partOf(p.Delivery), Claim{p.DeliveryID, p.ClaimToken})
		if err == nil && start.Applied {
			p.leaseEnd = start.asked.add(start.Deadline)
		}
		return err
	})
	d.room.hint()
	if err != nil {
		return started{}, fmt.Errorf("start call ws=%s delivery=%s: %w", p.WorkspaceID, p.DeliveryID, err)
	}
	return start, nil
}

// started is the answer of a start, and when the database was asked for it.
type started struct {
	Start
	asked moment
}

// startBatch asks for starts of a part.
func (d *Dispatcher) startBatch(ctx context.Context, in Part, claims []Claim) ([]started, error) {
	asked := d.clock.now()
	answers, err := d.deps.Calls.StartCallBatch(ctx, in.WorkspaceID, claims)
	all := make([]started, 0, len(answers))
	for _, answer := range answers {
		all = append(all, started{answer, asked})
	}
	return all, err
}

// call lets the adapter speak, until it is done or its time is over. When the
// platform refuses the credential, and nothing else, it speaks once more with a renewed one,
// and again when that was good for a while: a long upload outlives several.
func (d *Dispatcher) call(ctx context.Context, p *pass, secret autopost.Secret) autopost.Outcome {
	if d.callTime(p) <= 0 {
		return autopost.Failed(tooLate())
	}
	limit := newLimit(ctx, d.clock, d.callTime(p))
	defer limit.end()
	for again := false; ; again = true {
		p.moved = false
		outcome := d.speak(ctx, p, secret, limit)
		if again && !p.moved {
			return outcome
		}
		renewed, failure := d.renew(limit, p, secret, outcome.Error)
		switch {
		case failure != nil:
			return autopost.Failed(*failure)
		case renewed.IsZero():
			return outcome
		}
		secret = renewed
		limit.renew(d.callTime(p))
	}
}

func (d *Dispatcher) speak(ctx context.Context, p *pass, secret autopost.Secret, limit *limit) (outcome autopost.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold a URL with a token; its type and the stack do not.
			kind := fmt.Sprintf("%T", v)
			d.log.Error("delivery.adapter_panicked", append(ids(p), "panic", kind, "stack", string(debug.Stack()))...)
			outcome = autopost.Failed(unknown("the adapter panicked: " + kind))
		}
	}()
	call := autopost.Call{
		Delivery: p.Delivery,
		Secret:   secret,
		Media:    p.seen.Weigh(d.deps.Media.MaterialsFor(p.Delivery)),
		Emit: func(_ context.Context, step autopost.Acknowledged) error {
			limit.hold()
			if err := d.acknowledge(ctx, p, step, limit); err != nil {
				limit.end()
				return err
			}
			return nil
		},
		Renew: func(context.Context) error {
			limit.hold()
			if err := d.prolong(ctx, p, limit); err != nil {
				limit.end()
				return err
			}
			return nil
		},
	}
	if found, ok := d.reconcile(limit, p, &call); ok {
		return checked(found)
	}
	outcome = checked(p.adapter.Send(outbound.Fenced(limit, limit.open), call))
	p.used = p.used.With(outcome.Used)
	return outcome
}

// callTime is how long one call, or the next step, may take from now.
func (d *Dispatcher) callTime(p *pass) time.Duration {
	return min(d.cfg.AdapterTimeout, d.clock.until(p.leaseEnd)-d.cfg.margin())
}

// acknowledge records a step, renews the lease when half of it is spent, and
// waits for the slot of the next step. One that it then missed is asked for again: to
// record a step twice changes nothing but the slot.
func (d *Dispatcher) acknowledge(ctx context.Context, p *pass, step autopost.Acknowledged, limit *limit) error {
	crash.Here(crash.StepAcknowledged)
	for range startTries {
		progress, asked, err := d.record(ctx, p, step)
		if err != nil {
			return err
		}
		answered := d.clock.now()
		if err := d.keepLease(ctx, p, max(0, progress.SendIn)); err != nil {
			return err
		}
		if !sleep(limit, progress.SendIn-d.clock.since(answered)) {
			return fmt.Errorf("wait for the step after %s of delivery %s: %w", step.Step, p.DeliveryID, limit.Err())
		}
		if !progress.Limited || d.clock.since(asked)-progress.SendIn <= slotTolerance {
			break
		}
	}
	limit.renew(d.callTime(p))
	return nil
}

// record keeps a step that the platform has. It also returns when the answered question was asked.
func (d *Dispatcher) record(ctx context.Context, p *pass, step autopost.Acknowledged) (Progress, moment, error) {
	var progress Progress
	var asked moment
	err := d.insist(ctx, p.leaseEnd.add(-d.cfg.margin()), func() error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		asked = d.clock.now()
		var err error
		progress, err = d.deps.Calls.RecordSeriesProgress(ctx, p.WorkspaceID, p.DeliveryID, p.ClaimToken, step)
		return err
	})
	if err != nil {
		return Progress{}, asked, fmt.Errorf("record step %s of delivery %s: %w", step.Step, p.DeliveryID, err)
	}
	if !progress.Applied {
		return Progress{}, asked, fmt.Errorf("record step %s of delivery %s: refused: %s", step.Step, p.DeliveryID, progress.Reason)
	}
	crash.Here(crash.BetweenSteps)
	if !p.RenderMeta.Progress.Done(step.Step) {
		p.RenderMeta.Progress = p.RenderMeta.Progress.With(step)
	}
	p.moved = true
	return progress, asked, nil
}

// prolong gives a step that goes on the time of one call anew.
func (d *Dispatcher) prolong(ctx context.Context, p *pass, limit *limit) error {
	p.moved = true
	if err := d.keepLease(ctx, p, 0); err != nil {
		return err
	}
	limit.renew(d.callTime(p))
	return nil
}

// keepLease renews the lease when half of it is spent, counted from when the call goes on.
func (d *Dispatcher) keepLease(ctx context.Context, p *pass, goesOnIn time.Duration) error {
	if d.clock.until(p.leaseEnd) >= d.cfg.Lease/2+goesOnIn {
		return nil
	}
	return d.extend(ctx, p, d.cfg.Lease+goesOnIn)
}

func (d *Dispatcher) extend(ctx context.Context, p *pass, by time.Duration) error {
	seconds := int(math.Ceil(by.Seconds()))
	var applied bool
	err := d.insist(ctx, p.leaseEnd.add(-d.cfg.margin()), func() error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		asked := d.clock.now()
		var err error
		applied, err = d.deps.Calls.ExtendLease(ctx, p.WorkspaceID, p.DeliveryID, p.ClaimToken, seconds)
		if err == nil && applied {
			p.leaseEnd = asked.add(time.Duration(seconds) * time.Second)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("extend lease of delivery %s: %w", p.DeliveryID, err)
	}
	if !applied {
		return fmt.Errorf("extend lease of delivery %s: refused: the claim is no longer ours", p.DeliveryID)
	}
	return nil
}

// insist asks with growing pauses until ask succeeds, ctx ends, or until has
// passed. It asks at least once and returns the last error.
func (d *Dispatcher) insist(ctx context.Context, until moment, ask func() error) error {
	for n := 0; ; n++ {
		err := ask()
		if err == nil {
			return nil
		}
		pause := growing(n, 100*time.Millisecond, 2*time.Second)
		if d.clock.until(until) <= pause || !sleep(ctx, pause) {
			return err
		}
	}
}
