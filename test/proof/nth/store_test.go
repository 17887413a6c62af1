package nth

import (
	"context"
	"errors"
	"sync"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/pg"
)

var errGone = errors.New("the connection is gone")

// store is the dispatcher's database, one of whose calls fails.
type store struct {
	db *pg.Store
	// fails is the number of that call, from 1; late says that it is made, and only its answer lost.
	fails int
	late  bool

	mu    sync.Mutex
	calls int
	met   string
}

// through makes a call, unless it is the one to fail.
func through[T any](s *store, what string, ask func() (T, error)) (T, error) {
	s.mu.Lock()
	s.calls++
	hit := s.calls == s.fails
	if hit {
		s.met = what
	}
	s.mu.Unlock()
	if hit && !s.late {
		return *new(T), errGone
	}
	answer, err := ask()
	if hit {
		return *new(T), errors.Join(errGone, err)
	}
	return answer, err
}

// failed names the call that failed; "" while none has.
func (s *store) failed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met
}

func convert[A, B any](list []A, one func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, one(a))
	}
	return out
}

func roomOf(r dispatch.Room) pg.Room { return pg.Room(r) }

func partOf(p pg.Part) dispatch.Part { return dispatch.Part(p) }

func (s *store) ReadyWork(ctx context.Context, after string, limit int, rooms []dispatch.Room) (dispatch.Work, error) {
	return through(s, "ready_work", func() (dispatch.Work, error) {
		work, err := s.db.ReadyWork(ctx, after, limit, convert(rooms, roomOf))
		return dispatch.Work{Ready: convert(work.Ready, partOf), NextIn: work.NextIn}, err
	})
}

func (s *store) ClaimWithin(ctx context.Context, workspace, runID string, limit int, rooms []dispatch.Room) ([]autopost.Delivery, error) {
	return through(s, "claim_within", func() ([]autopost.Delivery, error) {
		return s.db.ClaimWithin(ctx, workspace, runID, limit, convert(rooms, roomOf))
	})
}

func (s *store) StartCallBatch(ctx context.Context, workspace string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	return through(s, "start_call_batch", func() ([]dispatch.Start, error) {
		a, err := s.db.StartCallBatch(ctx, workspace, convert(claims, func(c dispatch.Claim) pg.Claim { return pg.Claim(c) }))
		return convert(a, func(x pg.Start) dispatch.Start { return dispatch.Start(x) }), err
	})
}

func (s *store) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, token string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	return through(s, "record_series_progress", func() (dispatch.Progress, error) {
		a, err := s.db.RecordSeriesProgress(ctx, workspace, deliveryID, token, ack)
		return dispatch.Progress(a), err
	})
}

func (s *store) ExtendLease(ctx context.Context, workspace, deliveryID, token string, seconds int) (bool, error) {
	return through(s, "extend_lease", func() (bool, error) { return s.db.ExtendLease(ctx, workspace, deliveryID, token, seconds) })
}

func (s *store) CommitOutcomeBatch(ctx context.Context, workspace string, settlements []dispatch.Settlement) ([]dispatch.Commit, error) {
	return through(s, "commit_outcome_batch", func() ([]dispatch.Commit, error) {
		a, err := s.db.CommitOutcomeBatch(ctx, workspace, convert(settlements, func(x dispatch.Settlement) pg.Settlement { return pg.Settlement(x) }))
		return convert(a, func(x pg.Commit) dispatch.Commit { return dispatch.Commit(x) }), err
	})
}

func (s *store) ReleaseClaims(ctx context.Context, workspace string, tokens []string) error {
	_, err := through(s, "release_claims", func() (bool, error) { return true, s.db.ReleaseClaims(ctx, workspace, tokens) })
	return err
}

func (s *store) TouchRun(ctx context.Context, runID string) error {
	_, err := through(s, "touch_run", func() (bool, error) { return true, s.db.TouchRun(ctx, runID) })
	return err
}

// noActs is that nothing is to be done to posts that were sent.
type noActs struct{ dispatch.Acts }

func (noActs) ReadyActWorkspaces(context.Context, int) ([]string, error) { return nil, nil }
