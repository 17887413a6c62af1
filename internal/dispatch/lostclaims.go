package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"autopost"
	"autopost/internal/worker"
)

// lostFor is how long a claim without an answer is searched for. The server may finish it although its caller is
// gone; a claim waits at most 100 ms for a lock, so only its own work delays it.
const lostFor = time.Minute

// lostClaims are claims whose answer never arrived. If such a claim was committed, its deliveries would wait for
// their lease: the run that holds them is alive and does not know them.
//
// A delivery in flight is never released as lost. Its token is held from before the end of its claim until after
// its commit, and the database is asked only while the workspace has no running claim. If the request itself is
// late and releases a delivery by mistake, that delivery has a new claim, and start_call refuses the old one. A
// started one is not released: the daemon ends it when the answer arrives and it still does not know its token.
// If the outcome of a call is never recorded, its token stays held until the process ends.
type lostClaims struct {
	// missed holds one hint that a workspace was added.
	missed chan struct{}
	// interval is the time between two requests for the same workspace.
	interval time.Duration

	// held are the tokens of the deliveries in flight.
	held worker.Tokens

	mu       sync.Mutex
	searches map[string]search
}

// search covers one workspace. It ends with the answer to a request made after until.
type search struct {
	// answered is the time of the last answered request; zero if none was answered.
	answered time.Time
	until    time.Time
}

func newLostClaims(interval time.Duration) *lostClaims {
	return &lostClaims{
		missed: make(chan struct{}, 1), interval: interval, searches: map[string]search{},
	}
}

// miss starts a search, or extends it.
func (l *lostClaims) miss(workspace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searches[workspace] = search{answered: l.searches[workspace].answered, until: time.Now().Add(lostFor)}
	worker.Wake(l.missed)
}

// due returns the workspaces to ask for now, and the time until the next one is due; 0 if nothing is searched.
// A workspace whose claims keep failing is asked for once per interval.
func (l *lostClaims) due() (workspaces []string, next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for workspace, s := range l.searches {
		in := time.Until(s.answered.Add(l.interval))
		if s.answered.IsZero() || in <= 0 {
			workspaces = append(workspaces, workspace)
			in = l.interval
		}
		if next == 0 || in < next {
			next = in
		}
	}
	slices.Sort(workspaces)
	return workspaces, next
}

// answer ends a search, unless a claim may still appear after the request of that time.
func (l *lostClaims) answer(workspace string, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.searches[workspace]
	if !asked.Before(s.until) {
		delete(l.searches, workspace)
		return
	}
	l.searches[workspace] = search{answered: asked, until: s.until}
}

// releaseLostClaims polls for lost claims.
func (d *Dispatcher) releaseLostClaims(ctx context.Context) (next time.Duration, err error) {
	workspaces, next := d.lostClaims.due()
	for _, workspace := range workspaces {
		err = cmp.Or(d.releaseLost(ctx, workspace), err)
	}
	return next, err
}

// releaseLost releases the claims of this run that the database knows and the daemon does not.
func (d *Dispatcher) releaseLost(ctx context.Context, workspace string) error {
	d.inFlight.stallAndWait(workspace)
	defer d.inFlight.resume(workspace)
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	asked := time.Now()
	n, started, err := d.deps.Store.ReleaseLost(ctx, workspace, d.cfg.RunID, d.lostClaims.held.Known(workspace))
	if err == nil {
		var ended int
		ended, err = d.endLost(ctx, workspace, started)
		n += ended
	}
	if err == nil || errors.Is(err, worker.ErrRefused) {
		d.lostClaims.answer(workspace, asked)
	}
	if err != nil {
		return fmt.Errorf("release lost claims ws=%s: %w", workspace, err)
	}
	if n > 0 {
		d.log.Warn("dispatch.lost_claims_released", "workspace_id", workspace, "claims", n)
	}
	return nil
}

// endLost commits lost claims whose calls are recorded as started: they were not made. A claim that ended meanwhile
// has its outcome already.
func (d *Dispatcher) endLost(ctx context.Context, workspace string, started []Claim) (ended int, err error) {
	known := d.lostClaims.held.Known(workspace)
	var results []ClaimResult
	for _, c := range started {
		if !slices.Contains(known, c.ClaimToken) {
			results = append(results, ClaimResult{DeliveryID: c.DeliveryID, ClaimToken: c.ClaimToken, Outcome: autopost.Failed(notCalled())})
		}
	}
	if len(results) == 0 {
		return 0, nil
	}
	_, err = d.deps.Store.CommitOutcomeBatch(ctx, workspace, results)
	return len(results), err
}
