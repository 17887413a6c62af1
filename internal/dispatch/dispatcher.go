// Package dispatch is the second stage: it claims due deliveries, calls the
// platform through an adapter and commits what the call came to.
//
// It decides nothing. Which delivery is due, when its slot is, whether its call
// may begin and what becomes of its outcome is answered by the database; this
// package keeps the clock, the number of calls at once, and the promise that
// every claim ends in a commit, a hand-back or an expired lease.
//
//	claim ─► wait for the slot ─► credential ─► start_call ─► wait ─► adapter ─► commit
//	             │ stop asked: handed back      │ refused: committed       │ not applied: handed back by SQL
//
// What is to be done to posts that were sent goes a shorter way, beside it (acts.go):
// claim ─► credential ─► start_act ─► wait for the slot ─► adapter ─► commit.
//
// What a claim took whose answer never came is handed back as well (lost.go).
//
// Read dispatcher.go (rounds), then send.go (one delivery), then commit.go.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"autopost"
	"autopost/internal/crash"
	"autopost/internal/service"
	"autopost/internal/telemetry"
)

const (
	workspacesPerRound = 100
	// queryTimeout bounds each call to the database: a half-open connection must
	// not stop the loop.
	queryTimeout = 10 * time.Second
	// mostAtOnce bounds a batch of starts or outcomes, and with it how long its rows stay locked and
	// how many deliveries go on at one moment, before those of others that are ready as well.
	mostAtOnce = 60
	// leaveTimeout bounds the last heartbeat: a database that is gone does not keep a daemon from ending.
	leaveTimeout = 2 * time.Second
	// gather is how long a round waits after a delivery has ended, so that those
	// which end together are replaced by one claim.
	gather = 5 * time.Millisecond
	// A gate can be due and yet give nothing (another daemon holds it): rounds that
	// claim nothing are this far apart at least, doubling up to emptyMost.
	emptyLeast = 20 * time.Millisecond
	emptyMost  = time.Second
	// awayMost bounds the pauses in which a database that is away is asked again.
	awayMost = time.Second
	// settleGrace is what is left for commits when the drain's time is over.
	settleGrace = 5 * time.Second
)

// Dispatcher claims, sends and commits until it is stopped. Any number of them,
// in any number of processes, may share a database.
type Dispatcher struct {
	cfg  Config
	deps Deps
	log  *slog.Logger
	wake <-chan struct{}
	room *room
	lost *lost
	// starts and outcomes are the calls that come in numbers.
	starts   *service.Batches[Part, Claim, started]
	outcomes *service.Batches[Part, Settlement, Commit]
	secrets  *service.Batches[account, autopost.Delivery, autopost.Secret]
	clock    clock
	// claims are those under way; found holds one hint that one gave something since it was last read.
	claims sync.WaitGroup
	found  chan struct{}
	// inHand counts the deliveries of this daemon; undecided those of them whose
	// call has neither begun nor been given up.
	inHand    sync.WaitGroup
	undecided sync.WaitGroup
	unsent    unsent
	// empty and failed count the rounds in a row after which no claim gave anything though
	// a gate was due, and that failed.
	empty  int
	failed int
	// turns are those of workspaces in which acts are served.
	turns  service.Turns
	outage service.Outage
	search service.Outage // for what is lost
	// served is the last workspace that had its turn. The next round goes on after
	// it, so that one with a long queue, when there is no room or no claim left behind
	// it, does not keep the others waiting.
	served string
}

// life holds the three times for which things go on: rounds until a stop is asked
// for, calls until the drain's time is over, commits a little longer.
type life struct {
	run    context.Context
	call   context.Context
	settle context.Context
}

// New makes a Dispatcher without effect; an error means that cfg contradicts itself.
func New(cfg Config, deps Deps) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if deps.Boot == nil {
		deps.Boot = service.SinceBoot
	}
	return &Dispatcher{
		cfg:   cfg,
		deps:  deps,
		log:   deps.Log.With("run_id", cfg.RunID),
		wake:  deps.Wake,
		room:  newRoom(cfg.Senders),
		lost:  newLost(),
		found: make(chan struct{}, 1),
		clock: deps.Boot,
	}, nil
}

// Run works until ctx ends, then hands back what has not begun, gives begun calls
// their time and returns nil. It is to be called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	call, cutCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer cutCalls()
	settle, cutSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer cutSettling()
	d.starts = service.NewBatches(settle, service.Bounds{Most: mostAtOnce, Timeout: queryTimeout}, d.startBatch)
	d.outcomes = service.NewBatches(settle, service.Bounds{Most: mostAtOnce, Timeout: queryTimeout}, d.commitBatch)
	d.secrets = service.NewBatches(settle, service.Bounds{Most: mostAtOnce, Timeout: credentialTimeout}, d.oneSecret)

	if !d.announce(ctx) {
		return nil
	}
	// The heart beats until the last commit: a drain takes longer than a silent
	// run is believed to be alive.
	var heart sync.WaitGroup
	heart.Go(func() { d.beat(settle) })

	l := life{run: ctx, call: call, settle: settle}
	var acts sync.WaitGroup
	acts.Go(func() { d.serveActs(l) })
	var searching sync.WaitGroup
	searching.Go(func() { d.findLost(ctx) })
	for ctx.Err() == nil {
		d.pause(ctx, d.runOnce(l))
	}
	calls := time.AfterFunc(d.cfg.Drain, cutCalls)
	defer calls.Stop()
	commits := time.AfterFunc(d.cfg.Drain+settleGrace, cutSettling)
	defer commits.Stop()
	d.claims.Wait()
	d.undecided.Wait()
	d.handBack(l.settle)
	d.inHand.Wait()
	acts.Wait()
	searching.Wait()
	cutSettling()
	heart.Wait()
	d.leave(ctx)
	return nil
}

// announce makes the run known before its first claim: recovery takes the leases
// of an unknown run for those of a driver without a heartbeat.
func (d *Dispatcher) announce(ctx context.Context) bool {
	for n := 0; ctx.Err() == nil; n++ {
		err := d.touch(ctx, false)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			d.log.Warn("dispatch.waiting", "error", err)
		}
		sleep(ctx, growing(n, 100*time.Millisecond, awayMost))
	}
	return false
}

func (d *Dispatcher) beat(ctx context.Context) {
	ticker := time.NewTicker(d.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := d.touch(ctx, false); err != nil && ctx.Err() == nil {
				d.log.Warn("dispatch.heartbeat_missed", "error", err)
			}
		}
	}
}

// leave makes known that the run ended by itself: nobody is to miss it.
func (d *Dispatcher) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := d.touch(ctx, true); err != nil {
		d.log.Warn("dispatch.left_unnoticed", "error", err)
	}
}

func (d *Dispatcher) touch(ctx context.Context, ended bool) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := d.deps.Runs.TouchRun(ctx, d.cfg.RunID, d.cfg.Host, ended); err != nil {
		return fmt.Errorf("touch run %s: %w", d.cfg.RunID, err)
	}
	return nil
}

// round is what one round over what is ready came to.
type round struct {
	// ready says that there was due work; nextIn is when there will be some.
	ready  bool
	nextIn *time.Duration
	// cut says that some had no turn for the claims of others that were under way.
	cut bool
	// crowded says that there was no room.
	crowded bool
	// failed says that not even what is ready was told. One workspace whose
	// claim fails does not slow the rounds of the others.
	failed bool
}

// runOnce begins a claim of each part that is ready. None waits for another: one with
// a long queue, or of which the database is slow to tell, holds up itself.
func (d *Dispatcher) runOnce(l life) round {
	d.deps.Watch.Round()
	full, all := d.room.full()
	if all {
		return round{crowded: true}
	}
	work, err := d.readyWork(l.run, full)
	if err != nil {
		if l.run.Err() == nil {
			d.log.Error("dispatch.round_failed", "error", err)
		}
		return round{failed: true}
	}
	r := round{ready: len(work.Ready) > 0, nextIn: work.NextIn}
	for _, part := range work.Ready {
		r.cut = !d.turn(l, part) || r.cut
	}
	return r
}

// turn begins a claim of a part, unless one is under way; false says that claims of others are in its way.
func (d *Dispatcher) turn(l life, part Part) bool {
	// What waits for its start is late for its slot before long: no more is claimed than
	// the database keeps up with, and then in one claim, not in many small ones.
	if behind := d.starts.Unanswered(part) >= d.cfg.LimitPerWorkspace; behind || l.run.Err() != nil {
		return true
	}
	limit, rooms, others := d.room.open(part, d.cfg.LimitPerWorkspace)
	if limit == 0 {
		return !others
	}
	d.served = part.WorkspaceID
	d.claims.Go(func() {
		n, err := d.claim(l, part, limit, append(rooms, d.elsewhere(part)...))
		if err != nil {
			d.log.Error("dispatch.claim_failed", "workspace_id", part.WorkspaceID, "platform", part.Platform, "error", err)
		}
		d.room.close(part)
		if n > 0 {
			signal(d.found)
		}
	})
	return true
}

// elsewhere leaves no room on other platforms than that of a part.
func (d *Dispatcher) elsewhere(part Part) (rooms []Room) {
	for platform := range d.deps.Adapters {
		if platform != part.Platform {
			rooms = append(rooms, Room{Platform: platform})
		}
	}
	return rooms
}

// hinted reports whether there was a hint, and takes it.
func hinted(hints chan struct{}) bool {
	select {
	case <-hints:
		return true
	default:
		return false
	}
}

// signal leaves a hint for who looks at it later.
func signal(hints chan struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}

func (d *Dispatcher) readyWork(ctx context.Context, full []Room) (Work, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	work, err := d.deps.Queue.ReadyWork(ctx, d.served, workspacesPerRound, full)
	if err != nil {
		return Work{}, fmt.Errorf("ready work: %w", err)
	}
	return work, nil
}

// claim does not end with the run: the answer of a claim that has committed must
// arrive, so that its deliveries can be handed back.
func (d *Dispatcher) claim(l life, part Part, limit int, rooms []Room) (int, error) {
	ctx, cancel := context.WithTimeout(l.call, queryTimeout)
	defer cancel()
	asked := d.clock.now()
	crash.During(crash.InsideClaim)
	deliveries, err := d.deps.Queue.ClaimWithin(ctx, part.WorkspaceID, d.cfg.RunID, limit, rooms)
	if err != nil {
		if !errors.Is(err, service.ErrRefused) {
			d.lost.miss(part.WorkspaceID)
		}
		return 0, fmt.Errorf("claim deliveries ws=%s: %w", part.WorkspaceID, err)
	}
	if len(deliveries) > 0 {
		crash.Here(crash.Claimed)
	}
	d.deps.Watch.Batch("claim_deliveries", len(deliveries))
	for _, delivery := range deliveries {
		delivery.Together = len(deliveries)
		d.take(l, delivery, asked.add(d.cfg.Lease))
	}
	return len(deliveries), nil
}

func (d *Dispatcher) take(l life, delivery autopost.Delivery, leaseEnd moment) {
	p := &pass{
		Delivery: delivery,
		adapter:  d.deps.Adapters[delivery.Platform],
		leaseEnd: leaseEnd,
		decided:  sync.OnceFunc(d.undecided.Done),
		seen:     telemetry.Attempt{Claimed: time.Now()},
	}
	d.room.enter(delivery)
	d.lost.hold(delivery)
	d.undecided.Add(1)
	d.inHand.Go(func() {
		defer d.lost.drop(delivery)
		d.deliver(l, p)
	})
}

// pause waits until another round is worth its queries.
func (d *Dispatcher) pause(ctx context.Context, r round) {
	if r.failed {
		sleep(ctx, growing(d.failed, 100*time.Millisecond, awayMost))
		d.failed++
		return
	}
	d.failed = 0
	switch {
	case r.crowded:
		select {
		case <-ctx.Done():
		case <-d.room.freed:
			d.gather(ctx)
		}
	case r.cut:
		d.idle(ctx, emptyLeast)
	case r.ready:
		d.empty++
		d.idle(ctx, growing(d.empty-1, emptyLeast, emptyMost))
	default:
		d.empty = 0
		d.idle(ctx, untilNext(r.nextIn, d.cfg.Poll))
	}
}

// untilNext is how long to sleep when nothing is due. A gate that is due at this very moment was not when the workspaces were listed.
func untilNext(in *time.Duration, poll time.Duration) time.Duration {
	if in == nil {
		return poll
	}
	return min(max(*in, time.Millisecond), poll)
}

func (d *Dispatcher) idle(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case _, open := <-d.wake:
		if !open {
			d.wake = nil
		}
	case <-d.found: // there may be more, and it is to be asked when
		d.empty = 0
	case <-d.room.freed:
		// A commit may have re-armed its channel's gate.
		d.gather(ctx)
	}
	// The next round sees what was hinted at so far.
	if hinted(d.found) {
		d.empty = 0
	}
	hinted(d.room.freed)
}

// gather waits for more to end with what has just ended, but not while something new has come.
func (d *Dispatcher) gather(ctx context.Context) {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-d.found:
		d.empty = 0
	case _, open := <-d.wake:
		if !open {
			d.wake = nil
		}
	}
}

// growing is the n-th pause of a series that doubles from least up to most.
func growing(n int, least, most time.Duration) time.Duration {
	return min(most, least<<min(n, 16))
}

// sleep waits for d; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
