package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"autopost/internal/worker"
)

// lostFor is how long a claim without an answer is searched for. The server may finish it although its caller is gone; a
// claim waits at most 100 ms for a lock, so only its own work delays it.
const lostFor = time.Minute

// claims knows the messages in flight, and the workspaces in which a claim has no answer. If such a claim was committed,
// its messages would wait for their lease: the run that holds them is alive and does not know them. A claim and the
// request for lost ones run in the same loop, so no claim is running meanwhile.
type claims struct {
	// held are the tokens of the messages in flight. A token is held until after its commit.
	held worker.Tokens
	// lost has the workspaces to search. Only the loop of polls uses it.
	lost map[string]search
}

// search covers one workspace. It ends with the answer to a request made after until; the next request is due at next.
type search struct{ until, next time.Time }

func newClaims() *claims {
	return &claims{lost: map[string]search{}}
}

// miss starts a search after a claim without an answer, or extends it.
func (c *claims) miss(workspace string) {
	c.lost[workspace] = search{until: time.Now().Add(lostFor), next: c.lost[workspace].next}
}

// releaseLost releases the claims of this run that the database knows and the daemon does not. It returns the time until
// the next request; 0 if nothing is searched.
func (w *Worker) releaseLost(ctx context.Context) (next time.Duration, err error) {
	for workspace, s := range w.claims.lost {
		if wait := time.Until(s.next); wait > 0 {
			next = soonerOf(next, wait)
			continue
		}
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		asked := time.Now()
		released, failure := w.cfg.Store.BotReleaseLost(query, workspace, w.cfg.RunID, w.claims.held.Known(workspace))
		cancel()
		switch {
		case failure != nil && !errors.Is(failure, worker.ErrRefused):
			err = cmp.Or(err, fmt.Errorf("release lost claims ws=%s: %w", workspace, failure))
			continue
		case !asked.Before(s.until) || failure != nil:
			delete(w.claims.lost, workspace)
		default:
			w.claims.lost[workspace] = search{until: s.until, next: asked.Add(heartbeat)}
			next = soonerOf(next, heartbeat)
		}
		if released > 0 {
			w.cfg.Log.WarnContext(ctx, "bot.lost_claims_released", "workspace_id", workspace, "claims", released)
		}
	}
	return next, err
}

// soonerOf returns the shorter pause; 0 means no pause.
func soonerOf(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
