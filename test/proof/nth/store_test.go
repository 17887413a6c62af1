package nth

import (
	"context"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/pg"
)

// store is the dispatcher's database.
type store struct{ *calls }

func roomOf(r dispatch.Room) pg.Room { return pg.Room(r) }

func partOf(p pg.Part) dispatch.Part { return dispatch.Part(p) }

func (s store) ReadyWork(ctx context.Context, after string, limit int, rooms []dispatch.Room) (dispatch.Work, error) {
	return through(s.calls, "ready_work", func() (dispatch.Work, error) {
		work, err := s.db.ReadyWork(ctx, after, limit, convert(rooms, roomOf))
		return dispatch.Work{Ready: convert(work.Ready, partOf), NextIn: work.NextIn}, err
	})
}

func (s store) ClaimWithin(ctx context.Context, workspace, runID string, limit int, rooms []dispatch.Room) ([]autopost.Delivery, error) {
	return through(s.calls, "claim_within", func() ([]autopost.Delivery, error) {
		return s.db.ClaimWithin(ctx, workspace, runID, limit, convert(rooms, roomOf))
	})
}

func (s store) StartCallBatch(ctx context.Context, workspace string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	return through(s.calls, "start_call_batch", func() ([]dispatch.Start, error) {
		a, err := s.db.StartCallBatch(ctx, workspace, convert(claims, func(c dispatch.Claim) pg.Claim { return pg.Claim(c) }))
		return convert(a, func(x pg.Start) dispatch.Start { return dispatch.Start(x) }), err
	})
}

func (s store) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, token string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	return through(s.calls, "record_series_progress", func() (dispatch.Progress, error) {
		a, err := s.db.RecordSeriesProgress(ctx, workspace, deliveryID, token, ack)
		return dispatch.Progress(a), err
	})
}

func (s store) ExtendLease(ctx context.Context, workspace, deliveryID, token string, seconds int) (bool, error) {
	return through(s.calls, "extend_lease", func() (bool, error) { return s.db.ExtendLease(ctx, workspace, deliveryID, token, seconds) })
}

func (s store) CommitOutcomeBatch(ctx context.Context, workspace string, settlements []dispatch.Settlement) ([]dispatch.Commit, error) {
	return through(s.calls, "commit_outcome_batch", func() ([]dispatch.Commit, error) {
		a, err := s.db.CommitOutcomeBatch(ctx, workspace, convert(settlements, func(x dispatch.Settlement) pg.Settlement { return pg.Settlement(x) }))
		return convert(a, func(x pg.Commit) dispatch.Commit { return dispatch.Commit(x) }), err
	})
}

func (s store) ReleaseClaims(ctx context.Context, workspace string, tokens []string) error {
	return done(s.calls, "release_claims", func() error { return s.db.ReleaseClaims(ctx, workspace, tokens) })
}

func (s store) ReleaseLost(ctx context.Context, workspace, runID string, known []string) (int, error) {
	return through(s.calls, "release_lost", func() (int, error) { return s.db.ReleaseLost(ctx, workspace, runID, known) })
}

func (s store) TouchRun(ctx context.Context, runID, host string, ended bool) error {
	return done(s.calls, "touch_run", func() error { return s.db.TouchRun(ctx, runID, host, ended) })
}

// noActs is that nothing is to be done to posts that were sent.
type noActs struct{ dispatch.Acts }

func (noActs) ReadyActWorkspaces(context.Context, int) ([]string, error) { return nil, nil }
