package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"autopost/internal/failpoint"
	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

const (
	workspacesPerPoll = 100
	// gatherTime is the pause after the end of a delivery: those that end together are replaced by one claim.
	gatherTime = 5 * time.Millisecond
)

// emptyBackoff separates polls that find due work but claim none: a gate can be due while another daemon holds it.
var emptyBackoff = worker.Backoff{Least: 20 * time.Millisecond, Most: time.Second}

// polled is the result of one poll.
type polled struct {
	// ready means that work was due, running that its claims already ran; nextIn is the time until more is due.
	ready, running bool
	nextIn         *time.Duration
	// full means that all senders are busy.
	full bool
	// failed means that the database did not return the due work. A failed claim of one key does not count: it
	// must not slow down the others.
	failed bool
}

// contained is poll, whose panic counts as a failed poll: the calls in flight must not end.
func (d *Dispatcher) contained(p phases, timedOut bool) polled {
	result := polled{failed: true}
	_ = worker.Contained(p.run, func() error {
		result = d.poll(p, timedOut)
		return nil
	})()
	return result
}

// poll starts a claim for each claim key that is ready, and waits for none of them. If a pause timed out, it leaves
// out what waits for a running claim: then nextIn is the time until it can start another one.
func (d *Dispatcher) poll(p phases, timedOut bool) polled {
	d.deps.Recorder.Poll()
	full, all := d.inFlight.full()
	if all {
		return polled{full: true}
	}
	if timedOut {
		full = append(full, d.inFlight.claiming()...)
	}
	work, err := d.readyWork(p.run, full)
	if err != nil {
		if p.run.Err() == nil {
			d.log.Error("dispatch.round_failed", "error", err)
		}
		return polled{failed: true}
	}
	result := polled{nextIn: work.NextIn}
	for _, key := range work.Ready {
		if running := d.startClaim(p, key); running {
			result.running = true
		} else {
			result.ready = true
		}
	}
	return result
}

func (d *Dispatcher) readyWork(ctx context.Context, full []Capacity) (Work, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	work, err := d.deps.Store.ReadyWork(ctx, d.served, workspacesPerPoll, full)
	if err != nil {
		return Work{}, fmt.Errorf("ready work: %w", err)
	}
	return work, nil
}

// startClaim starts a claim if claims and capacity are left. It returns true if the key has a running one.
func (d *Dispatcher) startClaim(p phases, key ClaimKey) (running bool) {
	if d.isBehind(key) || p.run.Err() != nil {
		return false
	}
	limit, free, running := d.inFlight.beginClaim(key, d.cfg.LimitPerWorkspace)
	if limit == 0 {
		return running
	}
	d.served = key.WorkspaceID
	d.claims.Go(worker.Task(p.run, func() {
		n := 0
		defer func() { d.inFlight.endClaim(key, n) }()
		var err error
		n, err = d.claim(p, key, limit, append(free, d.otherPlatforms(key)...))
		if err != nil {
			d.log.Error("dispatch.claim_failed", "workspace_id", key.WorkspaceID, "platform", key.Platform, "error", err)
		}
	}))
	return false
}

// isBehind reports whether too many deliveries wait for their start record. They will be late for their slots, so the
// dispatcher claims only what the database keeps up with, and then in one claim instead of many small ones.
func (d *Dispatcher) isBehind(key ClaimKey) bool {
	if d.starts.Unanswered(key) < d.cfg.LimitPerWorkspace {
		return false
	}
	d.inFlight.behind.Store(true)
	return d.starts.Unanswered(key) >= d.cfg.LimitPerWorkspace // an answer before behind was set gave no hint
}

// otherPlatforms restricts a claim to the platform of its key.
func (d *Dispatcher) otherPlatforms(key ClaimKey) (none []Capacity) {
	for platform := range d.deps.Adapters {
		if platform != key.Platform {
			none = append(none, Capacity{Platform: platform})
		}
	}
	return none
}

// claim does not end with the run: the answer of a committed claim must arrive, so that its deliveries can be
// released.
func (d *Dispatcher) claim(p phases, key ClaimKey, limit int, free []Capacity) (int, error) {
	ctx, cancel := context.WithTimeout(p.call, queryTimeout)
	defer cancel()
	asked := d.clock.now()
	failpoint.Within(failpoint.InsideClaim)
	claimed, err := d.deps.Store.ClaimAndStart(ctx, key.WorkspaceID, d.cfg.RunID, limit, free, d.accounts.known(key))
	if err != nil {
		if !errors.Is(err, worker.ErrRefused) {
			d.lostClaims.miss(key.WorkspaceID)
		}
		return 0, fmt.Errorf("claim deliveries ws=%s: %w", key.WorkspaceID, err)
	}
	hitClaimed(claimed)
	d.deps.Recorder.Batch("claim_deliveries", len(claimed))
	for _, c := range claimed {
		c.ClaimSize = len(claimed)
		d.startDelivery(p, c, asked)
	}
	return len(claimed), nil
}

func hitClaimed(claimed []Claimed) {
	switch {
	case len(claimed) == 0:
	case slices.ContainsFunc(claimed, func(c Claimed) bool { return c.Start != nil }):
		failpoint.Hit(failpoint.ClaimStarted)
	default:
		failpoint.Hit(failpoint.Claimed)
	}
}

// startDelivery takes a delivery of a claim that was asked for at asked.
func (d *Dispatcher) startDelivery(p phases, claimed Claimed, asked instant) {
	delivery := claimed.Delivery
	a := &attempt{
		Delivery: delivery,
		adapter:  d.deps.Adapters[delivery.Platform],
		leaseEnd: asked.add(d.cfg.Lease),
		ask: func(ctx context.Context) (started, error) {
			return d.starts.Do(ctx, claimKeyOf(delivery), Claim{delivery.DeliveryID, delivery.ClaimToken})
		},
		decided: sync.OnceFunc(d.undecided.Done),
		record:  telemetry.Attempt{Claimed: time.Now()},
	}
	if claimed.Start != nil {
		a.begun = &started{*claimed.Start, asked}
	}
	d.inFlight.add(delivery)
	d.lostClaims.held.Hold(delivery.WorkspaceID, delivery.ClaimToken)
	d.undecided.Add(1)
	d.deliveries.Go(worker.Task(p.run, func() {
		// Without a recorded outcome, after a panic too, the token stays held: the search for lost claims must not
		// report this call as not made. Its lease ends with an unknown outcome.
		if d.deliver(p, a) {
			d.lostClaims.held.Drop(delivery.WorkspaceID, delivery.ClaimToken)
		}
	}))
}

// pause waits until another poll is worth its queries, and reports whether it timed out. worker.Loop does not fit here:
// several hints end the pause, and each sets a different next one.
func (d *Dispatcher) pause(ctx context.Context, result polled) (timedOut bool) {
	if result.failed {
		worker.Sleep(ctx, databaseBackoff.Pause(d.failedPolls))
		d.failedPolls++
		return false
	}
	d.failedPolls = 0
	claiming, blocked := d.inFlight.state()
	due := result.ready || result.running
	switch {
	case result.full:
		select {
		case <-ctx.Done():
		case <-d.inFlight.claimed:
			d.emptyPolls = 0
		case <-d.inFlight.emptied:
		case <-d.inFlight.freed:
			d.gather(ctx)
		}
		return false
	case due && (blocked || !result.ready):
		return d.idle(ctx, emptyBackoff.Least)
	case due:
		d.emptyPolls++
		return d.idle(ctx, emptyBackoff.Pause(d.emptyPolls-1))
	case !claiming:
		d.emptyPolls = 0
	}
	return d.idle(ctx, untilNext(result.nextIn, d.cfg.Poll))
}

// untilNext is the pause if nothing is due. It is at least 1 ms: a gate that is due now was not due when the
// database listed the work.
func untilNext(in *time.Duration, poll time.Duration) time.Duration {
	if in == nil {
		return poll
	}
	return min(max(*in, time.Millisecond), poll)
}

// idle waits for a hint, and reports whether it timed out.
func (d *Dispatcher) idle(ctx context.Context, wait time.Duration) (timedOut bool) {
	until := time.Now().Add(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
			timedOut = true
		case _, open := <-d.wake:
			d.woken(open)
		case <-d.inFlight.claimed:
			d.emptyPolls = 0
		case <-d.inFlight.freed:
			// A commit may have opened the gate of its channel.
			d.gather(ctx)
		case <-d.inFlight.emptied:
			if soon := time.Now().Add(d.emptyPause()); soon.Before(until) {
				until = soon
				timer.Reset(time.Until(until))
			}
			continue
		}
		break
	}
	// The next poll covers the hints up to now.
	if drained(d.inFlight.claimed) {
		d.emptyPolls = 0
	}
	drained(d.inFlight.emptied)
	drained(d.inFlight.freed)
	return timedOut
}

// emptyPause is the pause after a claim without deliveries: its gates may be due again.
func (d *Dispatcher) emptyPause() time.Duration {
	if _, blocked := d.inFlight.state(); blocked {
		return emptyBackoff.Least
	}
	return emptyBackoff.Pause(d.emptyPolls)
}

// gather waits for more deliveries to end, unless new work arrives.
func (d *Dispatcher) gather(ctx context.Context) {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-d.inFlight.claimed:
		d.emptyPolls = 0
	case _, open := <-d.wake:
		d.woken(open)
	}
}

// woken takes a wake-up. It forgets a closed channel, which would wake the dispatcher without end.
func (d *Dispatcher) woken(open bool) {
	d.inFlight.woken()
	if !open {
		d.wake = nil
	}
}

// drained takes a hint and reports whether there was one.
func drained(hints <-chan struct{}) bool {
	select {
	case <-hints:
		return true
	default:
		return false
	}
}
