// Package dispatch claims due deliveries, calls the platform through an adapter and commits the outcome.
//
// The database decides which delivery is due, when its slot is, whether its call may start and what its outcome
// changes. This package measures time, bounds the concurrent calls, and ends every claim with a commit, a release
// or an expired lease.
//
//	claim ─► wait for the slot ─► credential ─► start_call ─► wait ─► adapter ─► commit
//	             │ stop: release                │ refused: commit        │ not applied: SQL released it
//
// A claim also starts the calls whose slot is due and whose credential is known. They go on at the adapter.
//
// A post change (edit, delete, pin, unpin) takes a shorter path, in postchanges.go:
// claim ─► credential ─► start_act ─► wait for the slot ─► adapter ─► commit.
//
// If the answer of a claim is lost, lostclaims.go releases its deliveries.
//
// Read dispatcher.go, then claim.go, attempt.go and send.go, then commit.go.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"autopost"
	"autopost/internal/worker"
)

const (
	// queryTimeout bounds each call to the database: a half-open connection must not stop the loop.
	queryTimeout = 10 * time.Second
	// maxBatch bounds a batch of starts or outcomes: the time that its rows stay locked, and the number of
	// deliveries that continue at the same moment, ahead of other ready ones.
	maxBatch = 60
	// leaveTimeout bounds the last heartbeat, so that an unavailable database does not delay the end of a daemon.
	leaveTimeout = 2 * time.Second
	// commitGrace is the time for commits after the drain.
	commitGrace = 5 * time.Second
)

// databaseBackoff is the pause between two tries while the database is unavailable.
var databaseBackoff = worker.Backoff{Least: 100 * time.Millisecond, Most: time.Second}

// Dispatcher claims, sends and commits until it is stopped. Any number of dispatchers, in any number of processes,
// may share a database.
type Dispatcher struct {
	cfg        Config
	deps       Deps
	log        *slog.Logger
	wake       <-chan struct{}
	clock      clock
	inFlight   *inFlight
	lostClaims *lostClaims
	unstarted  unstarted
	// starts, outcomes and secrets merge the calls of many deliveries.
	starts   *worker.Batcher[ClaimKey, Claim, started]
	outcomes *worker.Batcher[ClaimKey, ClaimResult, Commit]
	secrets  *worker.Batcher[account, autopost.Delivery, autopost.Secret]
	accounts accounts
	claims   sync.WaitGroup // the running claims
	// deliveries are those in flight; undecided are those of them whose call neither started nor was given up.
	deliveries sync.WaitGroup
	undecided  sync.WaitGroup
	changes    worker.PerKey // workers for post changes, one per workspace
	// emptyPolls counts the polls in a row that found due work but claimed none; failedPolls those that failed.
	emptyPolls  int
	failedPolls int
	// served is the workspace of the last claim. The next poll starts behind it, so that a workspace with a long
	// queue does not delay the others when capacity or claims run out.
	served string
}

// phases are the contexts of a stop: polls end at once, calls after the drain, commits a little later.
type phases struct {
	run    context.Context
	call   context.Context
	commit context.Context
}

// New makes a Dispatcher without effect. An error means that cfg is not valid.
func New(cfg Config, deps Deps) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if deps.Boot == nil {
		deps.Boot = worker.SinceBoot
	}
	return &Dispatcher{
		cfg:        cfg,
		deps:       deps,
		log:        deps.Log.With("run_id", cfg.RunID),
		wake:       deps.Wake,
		clock:      deps.Boot,
		inFlight:   newInFlight(cfg.Senders),
		lostClaims: newLostClaims(cfg.Heartbeat),
	}, nil
}

// Run works until ctx ends. Then it releases unstarted claims, lets started calls finish, and returns nil. It may
// be called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	call, cancelCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelCalls()
	commit, cancelCommits := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelCommits()
	d.starts = worker.NewBatcher(commit, worker.Bounds{Most: maxBatch, Timeout: queryTimeout}, d.startBatch)
	d.outcomes = worker.NewBatcher(commit, worker.Bounds{Most: maxBatch, Timeout: queryTimeout}, d.commitBatch)
	d.secrets = worker.NewBatcher(commit, worker.Bounds{Most: maxBatch, Timeout: credentialTimeout}, d.fetchSecret)

	if !d.announce(ctx) {
		return nil
	}
	// Heartbeats continue until the last commit: a drain takes longer than recovery waits for a silent run.
	var heartbeat, background sync.WaitGroup
	heartbeat.Go(worker.Task(ctx, func() { d.loop(commit, worker.Loop{Poll: d.beat, Interval: d.cfg.Heartbeat, Delay: d.cfg.Heartbeat}) }))

	p := phases{run: ctx, call: call, commit: commit}
	background.Go(worker.Task(ctx, func() {
		defer d.changes.Wait()
		d.loop(ctx, worker.Loop{
			Poll: func(context.Context) (time.Duration, error) { return 0, d.pollChanges(p) }, Interval: d.cfg.Poll,
			Wake: d.deps.PostChangesWake, Name: "acts", Log: d.log,
		})
	}))
	background.Go(worker.Task(ctx, func() {
		d.loop(ctx, worker.Loop{
			Poll: d.releaseLostClaims, Interval: d.cfg.Heartbeat, Wake: d.lostClaims.missed,
			Backoff: worker.Backoff{Least: time.Second, Most: time.Second}, Name: "dispatch.lost_claims", Log: d.log,
		})
	}))
	for timedOut := false; ctx.Err() == nil; {
		timedOut = d.pause(ctx, d.contained(p, timedOut))
	}
	d.drain(p, cancelCalls, cancelCommits, &background)
	cancelCommits()
	heartbeat.Wait()
	d.leave(ctx)
	return nil
}

func (d *Dispatcher) loop(ctx context.Context, l worker.Loop) {
	_ = l.Run(ctx) // always nil
}

// drain releases unstarted claims and waits for started calls, their commits and the loops in background.
func (d *Dispatcher) drain(p phases, cancelCalls, cancelCommits func(), background *sync.WaitGroup) {
	calls := time.AfterFunc(d.cfg.Drain, cancelCalls)
	defer calls.Stop()
	commits := time.AfterFunc(d.cfg.Drain+commitGrace, cancelCommits)
	defer commits.Stop()
	d.claims.Wait()
	d.undecided.Wait()
	d.release(p.commit)
	d.deliveries.Wait()
	background.Wait()
}

// announce registers the run before its first claim: recovery treats the leases of an unknown run as those of a
// driver without heartbeats.
func (d *Dispatcher) announce(ctx context.Context) bool {
	for n := 0; ctx.Err() == nil; n++ {
		err := d.touch(ctx, false)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			d.log.Warn("dispatch.waiting", "error", err)
		}
		worker.Sleep(ctx, databaseBackoff.Pause(n))
	}
	return false
}

func (d *Dispatcher) beat(ctx context.Context) (time.Duration, error) {
	err := d.touch(ctx, false)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("dispatch.heartbeat_missed", "error", err)
	}
	return 0, err
}

// leave records that the run ended, so that recovery does not wait for it.
func (d *Dispatcher) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := d.touch(ctx, true); err != nil {
		d.log.Warn("dispatch.end_not_recorded", "error", err)
	}
}

func (d *Dispatcher) touch(ctx context.Context, ended bool) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := d.deps.Store.TouchRun(ctx, d.cfg.RunID, d.cfg.Host, ended); err != nil {
		return fmt.Errorf("touch run %s: %w", d.cfg.RunID, err)
	}
	return nil
}
