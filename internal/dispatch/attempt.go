package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/outbound"
	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

const (
	// startLead is how long before its slot a delivery asks to start: about one round trip to the database.
	startLead = 5 * time.Millisecond
	// slotHorizon is how far ahead the database reserves the slot of a delivery; the slot of a post change may be
	// two horizons ahead. It bounds waits by our clock, which may be wrong by days: the start knows the true time.
	slotHorizon = time.Second
	// slotTolerance is how late a first byte may be before its slot is void.
	slotTolerance = 100 * time.Millisecond
	startTries    = 3
)

// attempt is one claimed delivery, or one claimed post change, until its commit.
type attempt struct {
	autopost.Delivery
	adapter autopost.Adapter
	// leaseEnd is never later than the true end of the lease: both clocks are read before the database is asked.
	leaseEnd instant
	// ask requests the start record.
	ask func(ctx context.Context) (started, error)
	// decided runs once the call has started or was given up.
	decided func()
	// begun is the start that the claim recorded; nil if none, or if it was used.
	begun *started
	// starts counts the requests for a start record.
	starts int
	// verdict is the answer of the platform about an earlier attempt; "" if it was not asked.
	verdict string
	// accepted means that the platform accepted a step, or a part of one, with the present secret.
	accepted bool
	// used is the consumption of units that the platform charges for, whatever the outcome.
	used autopost.Used
	// answer keeps the last answer of the platform.
	answer *outbound.LastAnswer
	// record receives the times and results for metrics, traces and the log.
	record telemetry.Attempt
}

// result is the result of an attempt, for the commit and the log.
type result struct {
	outcome autopost.Outcome
	// raw shows the platform's answer to a failed call; nil if there is none.
	raw func() json.RawMessage
	// took is the duration of the call; late is how long after its slot the call started.
	took, late time.Duration
}

// ending says how to end a claim after its attempt.
type ending int

const (
	ended     ending = iota // commit the outcome
	abandoned               // not started: release the claim
	refused                 // the database has released the claim
)

// untilSlot is the wait before a delivery asks to start.
func (a *attempt) untilSlot() time.Duration {
	if a.SendAt == nil || a.begun != nil {
		return 0
	}
	return min(time.Until(*a.SendAt)-startLead, slotHorizon)
}

// deliver takes a claimed delivery to its commit, or marks it for release. It returns false if a call was possibly made
// and the database did not record its outcome.
func (d *Dispatcher) deliver(p phases, a *attempt) (recorded bool) {
	defer d.inFlight.remove(a.Delivery)
	defer a.decided()
	defer d.deps.Recorder.InFlight()()
	if a.adapter == nil {
		return d.commit(p, a, result{outcome: autopost.Failed(noAdapter(a.Platform))})
	}
	if !worker.Sleep(p.run, a.untilSlot()) && a.begun == nil {
		d.unstarted.add(a)
		return true
	}
	res, end := d.attempt(p, a)
	switch end {
	case ended:
		return d.commit(p, a, res)
	case abandoned:
		d.unstarted.add(a)
	case refused:
	}
	return true
}

// attempt makes the call if the database allows its start.
func (d *Dispatcher) attempt(p phases, a *attempt) (result, ending) {
	secret, failure := d.credential(p, a)
	if failure != nil {
		return result{outcome: autopost.Failed(*failure)}, ended
	}
	if p.run.Err() != nil && a.begun == nil {
		return result{}, abandoned
	}
	a.record.Asked = time.Now()
	start, late, err := d.begin(p, a)
	a.decided()
	d.deps.Recorder.Started(start.Applied, start.Reason, err)
	if err != nil {
		d.log.Warn("delivery.start_unanswered", append(ids(a), "error", err)...)
		return result{outcome: autopost.Failed(notCalled())}, ended
	}
	if !start.Applied {
		d.log.Info("delivery.not_started", append(ids(a), "reason", start.Reason)...)
		return result{}, refused
	}
	failpoint.Hit(failpoint.Started)
	began := time.Now()
	outcome := d.call(p.call, a, secret)
	failpoint.Hit(failpoint.ReplyRead)
	outcome.Used = a.used
	a.record.Called(began, late, start.Limited)
	res := result{outcome: outcome, took: time.Since(began), late: late}
	if !outcome.OK {
		res.raw = a.answer.Show()
	}
	return res, ended
}

// begin writes the start record and waits for the slot. If this daemon misses the slot, it asks for a new one; the
// last slot is used even if it is missed, so that a slow machine does not hold its claims until their leases end.
func (d *Dispatcher) begin(p phases, a *attempt) (Start, time.Duration, error) {
	var late time.Duration
	var start started
	for range startTries {
		var err error
		start, err = d.start(p, a)
		if err != nil || !start.Applied || !start.Limited {
			return start.Start, 0, err
		}
		worker.Sleep(p.call, d.untilStart(a, start.Start))
		// The database read its clock after it was asked, so this is an upper bound.
		if late = d.clock.since(start.asked) - start.SendIn; late <= slotTolerance {
			break
		}
	}
	return start.Start, late, nil
}

// untilStart is the wait for the slot of a start. The first slot is at most two horizons ahead; a longer wait means
// that the clock of the database was set back. A slot that replaces a missed one may be further ahead; it is
// awaited until the lease ends.
func (d *Dispatcher) untilStart(a *attempt, start Start) time.Duration {
	if a.starts > 1 {
		return min(start.SendIn, d.clock.until(a.leaseEnd))
	}
	return min(start.SendIn, 2*slotHorizon)
}

// start repeats the request until it is answered: a committed start record without an answer would become an
// unknown outcome. The claim may have answered already.
func (d *Dispatcher) start(p phases, a *attempt) (started, error) {
	var start started
	if a.begun != nil {
		start, a.begun = *a.begun, nil
		a.starts++
		a.leaseEnd = start.asked.add(min(start.Deadline, d.cfg.Lease))
		return start, nil
	}
	err := d.retryUntil(p.run, a.leaseEnd.add(-d.cfg.margin()), func() (err error) {
		a.starts++
		start, err = a.ask(p.call)
		if err == nil && start.Applied {
			// After a jump of its clock, the database may answer with a lease of a day.
			a.leaseEnd = start.asked.add(min(start.Deadline, d.cfg.Lease))
		}
		return err
	})
	d.inFlight.started()
	if err != nil {
		return started{}, fmt.Errorf("start call ws=%s delivery=%s: %w", a.WorkspaceID, a.DeliveryID, err)
	}
	return start, nil
}

// started is a Start and the instant of its request.
type started struct {
	Start
	asked instant
}

func (d *Dispatcher) startBatch(ctx context.Context, key ClaimKey, claims []Claim) ([]started, error) {
	d.deps.Recorder.Batch("start_call_batch", len(claims))
	asked := d.clock.now()
	answers, err := d.deps.Store.StartCallBatch(ctx, key.WorkspaceID, claims)
	all := make([]started, 0, len(answers))
	for _, answer := range answers {
		all = append(all, started{answer, asked})
	}
	return all, err
}

var retryBackoff = worker.Backoff{Least: 100 * time.Millisecond, Most: 2 * time.Second}

// retryUntil repeats ask with growing pauses until it succeeds, ctx ends or the instant until has passed. It asks
// at least once and returns the last error.
func (d *Dispatcher) retryUntil(ctx context.Context, until instant, ask func() error) error {
	for n := 0; ; n++ {
		err := ask()
		if err == nil {
			return nil
		}
		pause := retryBackoff.Pause(n)
		if d.clock.until(until) <= pause || !worker.Sleep(ctx, pause) {
			return err
		}
	}
}
