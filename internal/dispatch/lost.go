package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"autopost"
	"autopost/internal/service"
)

// lostFor is how long it is asked for what a claim without an answer has taken. The server may go on
// with it though its caller is gone: nothing bounds that but its own work, since it waits for no lock longer than 100 ms.
const lostFor = time.Minute

// lost are the workspaces in which a claim was not answered. If it was committed, its
// deliveries would wait for their lease: the run that has them is alive, and does not know.
//
// What is in hand is never taken for lost: it is held from before the end of its claim until
// after its commit, and it is asked only while no claim of the workspace is under way.
// Should the question itself come late, what it takes back in error has a new
// claim: start_call refuses the old one.
type lost struct {
	// missed holds one hint that there is one more workspace.
	missed chan struct{}

	mu       sync.Mutex
	searches map[string]search
	// held are the tokens of what is in hand, by workspace.
	held map[string]map[string]bool
}

// search is for what was lost in a workspace. It ends with the answer to a question asked after until.
type search struct {
	answered bool
	until    time.Time
}

func newLost() *lost {
	return &lost{missed: make(chan struct{}, 1), searches: map[string]search{}, held: map[string]map[string]bool{}}
}

func (l *lost) hold(d autopost.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[d.WorkspaceID] == nil {
		l.held[d.WorkspaceID] = map[string]bool{}
	}
	l.held[d.WorkspaceID][d.ClaimToken] = true
}

func (l *lost) drop(d autopost.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held[d.WorkspaceID], d.ClaimToken)
	if len(l.held[d.WorkspaceID]) == 0 {
		delete(l.held, d.WorkspaceID)
	}
}

func (l *lost) known(workspace string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held[workspace]))
}

// miss begins a search, or has one go on.
func (l *lost) miss(workspace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searches[workspace] = search{answered: l.searches[workspace].answered, until: time.Now().Add(lostFor)}
	signal(l.missed)
}

// workspaces are those of all searches, or of those that had no answer yet: one in which claim
// after claim fails is asked for no more often than others.
func (l *lost) workspaces(all bool) (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, s := range l.searches {
		if all || !s.answered {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// answered ends a search, unless there may be more after the question.
func (l *lost) answered(workspace string, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.searches[workspace]
	if !asked.Before(s.until) {
		delete(l.searches, workspace)
		return
	}
	l.searches[workspace] = search{answered: true, until: s.until}
}

// findLost asks for what was lost until there is an answer, and then with each beat of the heart as long as there may be more.
func (d *Dispatcher) findLost(ctx context.Context) {
	ticker := time.NewTicker(d.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		all := false
		select {
		case <-ctx.Done():
			return
		case <-d.lost.missed:
		case <-ticker.C:
			all = true
		}
		var failed error
		for _, workspace := range d.lost.workspaces(all) {
			failed = cmp.Or(d.releaseLost(ctx, workspace), failed)
		}
		d.search.Report(ctx, d.log, "dispatch.lost_claims", failed)
		if failed != nil && sleep(ctx, awayMost) {
			signal(d.lost.missed)
		}
	}
}

// releaseLost hands back what the database says that this run holds, and that it does not hold.
func (d *Dispatcher) releaseLost(ctx context.Context, workspace string) error {
	d.room.still(workspace)
	defer d.room.resume(workspace)
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	asked := time.Now()
	n, err := d.deps.Queue.ReleaseLost(ctx, workspace, d.cfg.RunID, d.lost.known(workspace))
	if err == nil || errors.Is(err, service.ErrRefused) {
		d.lost.answered(workspace, asked)
	}
	if err != nil {
		return fmt.Errorf("release lost claims ws=%s: %w", workspace, err)
	}
	if n > 0 {
		d.log.Warn("dispatch.lost_claims_released", "workspace_id", workspace, "claims", n)
	}
	return nil
}
