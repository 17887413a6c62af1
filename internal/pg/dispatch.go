package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
	"autopost/internal/dispatch"
)

// ReadyWork returns the claim keys with due work, in a circle that starts behind the workspace after, and the time
// until more is due. It skips groups without capacity.
func (s *Store) ReadyWork(ctx context.Context, after string, limit int, free []dispatch.Capacity) (dispatch.Work, error) {
	a, err := call[struct {
		Workspaces []string
		Platforms  map[string][]autopost.Platform
		NextWakeMS *int64 `json:"next_wake_ms"`
	}](ctx, s, `select * from autopost.ready_work($1, $2, $3)`, after, limit, list(free))
	if err != nil {
		return dispatch.Work{}, err
	}
	work := dispatch.Work{NextIn: inMilliseconds(a.NextWakeMS)}
	for _, workspace := range a.Workspaces {
		for _, platform := range a.Platforms[workspace] {
			work.Ready = append(work.Ready, dispatch.ClaimKey{WorkspaceID: workspace, Platform: platform})
		}
	}
	return work, nil
}

func inMilliseconds(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	in := time.Duration(*ms) * time.Millisecond
	return &in
}

// list avoids a null argument.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

const claimColumns = `workspace_id, delivery_id, message_id, channel_id, platform, target_id, auth_ref, rate_group, attempt, claim_token,
	sending_lease_until, send_at, rendered_text, render_meta, payload, settings, trace_id, on_unknown, unknown_outcomes, last_call_at,
	last_provider_message_id, known_posts, due_at, scheduled_for, call_begun_at, deadline`

// ClaimAndStart leases up to limit due deliveries of a workspace to a run, and of each group at most its capacity. It
// starts the calls of those whose slot is due and whose credential is in authRefs.
func (s *Store) ClaimAndStart(ctx context.Context, workspace, runID string, limit int, free []dispatch.Capacity, authRefs []string) ([]dispatch.Claimed, error) {
	const claim = `select ` + claimColumns + ` from autopost.claim_and_start($1, $2, $3, $4, $5)`
	args, err := jsonArguments([]any{workspace, runID, limit, list(free)})
	if err != nil {
		return nil, err
	}
	args = append(args, list(authRefs))
	run := func() ([]dispatch.Claimed, error) {
		rows, err := s.calls.Query(ctx, claim, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanClaimed)
	}
	claimed, err := run()
	if hasState(err, stateFeatureNotSupported) {
		claimed, err = run()
	}
	if err != nil {
		return nil, fmt.Errorf("claim deliveries ws=%s: %w", workspace, translate(err))
	}
	return claimed, nil
}

func scanClaimed(row pgx.CollectableRow) (dispatch.Claimed, error) {
	var d dispatch.Claimed
	var begunAt, deadline *time.Time
	err := row.Scan(&d.WorkspaceID, &d.DeliveryID, &d.MessageID, &d.ChannelID, &d.Platform, &d.TargetID, &d.AuthRef, &d.RateGroup, &d.Attempt,
		&d.ClaimToken, &d.LeaseUntil, &d.SendAt, &d.RenderedText, &d.RenderMeta, &d.Payload, &d.Settings, &d.TraceID, &d.OnUnknown,
		&d.UnknownOutcomes, &d.LastCallAt, &d.LastProviderMessageID, &d.KnownPosts, &d.DueAt, &d.ScheduledFor, &begunAt, &deadline)
	if begunAt != nil {
		start := startAnswer{Applied: true, Now: *begunAt, SendAt: d.SendAt, Deadline: deadline}.start()
		d.Start = &start
	}
	return d, err
}

// until returns the time from the database's now to at, at least zero.
func until(at *time.Time, now time.Time) time.Duration {
	if at == nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// StartAct writes the start record of a post change, or returns why its call must not start.
func (s *Store) StartAct(ctx context.Context, workspace, actID, claimToken string) (dispatch.Start, error) {
	a, err := call[startAnswer](ctx, s, `select * from autopost.start_act($1, $2, $3)`, workspace, actID, claimToken)
	if err != nil {
		return dispatch.Start{}, fmt.Errorf("start act id=%s: %w", actID, err)
	}
	return a.start(), nil
}

// startAnswer is the answer of start_call and start_act.
type startAnswer struct {
	Applied  bool
	Reason   string
	Now      time.Time
	SendAt   *time.Time `json:"send_at"`
	Deadline *time.Time
}

func (a startAnswer) start() dispatch.Start {
	start := dispatch.Start{Applied: a.Applied, Deadline: until(a.Deadline, a.Now), Reason: a.Reason}
	start.Limited, start.SendIn = slot(a.SendAt, a.Now)
	return start
}

// slot returns whether a call has a slot, and the time from the database's now to it.
func slot(at *time.Time, now time.Time) (limited bool, in time.Duration) {
	if at == nil {
		return false, 0
	}
	return true, at.Sub(now)
}

// StartCallBatch writes start records, or returns why calls must not start. It answers in the order of the claims.
func (s *Store) StartCallBatch(ctx context.Context, workspace string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	answers, err := call[[]startAnswer](ctx, s, `select * from autopost.start_call_batch($1, $2)`, workspace, claims)
	if err != nil {
		return nil, fmt.Errorf("start calls ws=%s: %w", workspace, err)
	}
	starts := make([]dispatch.Start, 0, len(answers))
	for _, a := range answers {
		starts = append(starts, a.start())
	}
	return starts, nil
}

// RecordSeriesProgress records an acknowledged step.
func (s *Store) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	a, err := call[struct {
		Applied bool
		Reason  string
		Now     time.Time
		SendAt  *time.Time `json:"send_at"`
	}](ctx, s, `select * from autopost.record_series_progress($1, $2, $3, $4)`, workspace, deliveryID, claimToken, ack)
	if err != nil {
		return dispatch.Progress{}, fmt.Errorf("record series progress delivery=%s: %w", deliveryID, err)
	}
	progress := dispatch.Progress{Applied: a.Applied, Reason: a.Reason}
	progress.Limited, progress.SendIn = slot(a.SendAt, a.Now)
	return progress, nil
}

// ExtendLease makes a lease end the given number of seconds from now; false means that the claim is not current.
func (s *Store) ExtendLease(ctx context.Context, workspace, deliveryID, claimToken string, seconds int) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.extend_lease($1, $2, $3, $4)`, workspace, deliveryID, claimToken, seconds)
	if err != nil {
		return false, fmt.Errorf("extend lease delivery=%s: %w", deliveryID, err)
	}
	return a.Applied, nil
}

// ReleaseClaims releases unstarted claims.
func (s *Store) ReleaseClaims(ctx context.Context, workspace string, tokens []string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.release_claims($1, $2)`, workspace, tokens)
	if err != nil {
		return fmt.Errorf("release claims ws=%s: %w", workspace, err)
	}
	return nil
}

// ReleaseLost releases the unstarted claims of a run, except those with a known token, and returns the started ones.
func (s *Store) ReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, started []dispatch.Claim, err error) {
	a, err := call[struct {
		Released int
		Started  []dispatch.Claim
	}](ctx, s, `select * from autopost.release_lost($1, $2, $3)`, workspace, runID, list(known))
	if err != nil {
		return 0, nil, fmt.Errorf("release lost claims ws=%s: %w", workspace, err)
	}
	return a.Released, a.Started, nil
}

// CommitOutcomeBatch records outcomes and answers in their order. A repeated call returns the same answers.
func (s *Store) CommitOutcomeBatch(ctx context.Context, workspace string, results []dispatch.ClaimResult) ([]dispatch.Commit, error) {
	answers, err := call[[]struct {
		Applied     bool
		Status      string
		Reason      string
		NextRetryAt instant `json:"next_retry_at"`
		PayloadRef  string  `json:"payload_ref"`
	}](ctx, s, `select * from autopost.commit_outcome_batch($1, $2)`, workspace, results)
	if err != nil {
		return nil, fmt.Errorf("commit outcomes ws=%s: %w", workspace, err)
	}
	commits := make([]dispatch.Commit, 0, len(answers))
	for _, a := range answers {
		commits = append(commits, dispatch.Commit{Applied: a.Applied, Status: a.Status, Reason: a.Reason, NextRetryAt: a.NextRetryAt.Time, PayloadRef: a.PayloadRef})
	}
	return commits, nil
}

// ReadyActWorkspaces returns up to limit workspaces with due post changes.
func (s *Store) ReadyActWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_act_workspaces($1)`, limit)
}

const actColumns = `workspace_id, act_id, kind, attempt, claim_token, lease_until, delivery_id, message_id, channel_id, platform, target_id, auth_ref,
	rate_group, rendered_text, render_meta, payload, settings, trace_id`

// ClaimActs leases up to limit due post changes of a workspace to a run.
func (s *Store) ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.PostChange, error) {
	rows, err := s.calls.Query(ctx, `select `+actColumns+` from autopost.claim_acts($1, $2, $3)`, workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim acts ws=%s: %w", workspace, translate(err))
	}
	acts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (autopost.PostChange, error) {
		var a autopost.PostChange
		err := row.Scan(&a.WorkspaceID, &a.ActID, &a.Kind, &a.Attempt, &a.ClaimToken, &a.LeaseUntil, &a.DeliveryID, &a.MessageID, &a.ChannelID, &a.Platform,
			&a.TargetID, &a.AuthRef, &a.RateGroup, &a.RenderedText, &a.RenderMeta, &a.Payload, &a.Settings, &a.TraceID)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim acts ws=%s: %w", workspace, translate(err))
	}
	return acts, nil
}

// CommitAct records the result of a post change; a nil failure is a success.
func (s *Store) CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error, hasRaw bool) (dispatch.Commit, error) {
	a, err := call[struct {
		Applied    bool
		Status     string
		Reason     string
		NextAt     *time.Time `json:"next_at"`
		PayloadRef string     `json:"payload_ref"`
	}](ctx, s, `select * from autopost.commit_act($1, $2, $3, $4)`, workspace, actID, claimToken, map[string]any{"ok": failure == nil, "error": failure, "has_raw": hasRaw})
	if err != nil {
		return dispatch.Commit{}, fmt.Errorf("commit act id=%s: %w", actID, err)
	}
	return dispatch.Commit{Applied: a.Applied, Status: a.Status, Reason: a.Reason, NextRetryAt: a.NextAt, PayloadRef: a.PayloadRef}, nil
}

// instant decodes a timestamp of the database; "infinity" (a held delivery) becomes nil.
type instant struct{ Time *time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (i *instant) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" || string(raw) == `"infinity"` {
		return nil
	}
	i.Time = new(time.Time)
	return json.Unmarshal(raw, i.Time)
}

// TouchRun is the heartbeat of a dispatch run on host; ended is true for the last one.
func (s *Store) TouchRun(ctx context.Context, runID, host string, ended bool) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.touch_run($1, nullif($2, ''), $3)`, runID, host, ended)
	if err != nil {
		return fmt.Errorf("touch run %s: %w", runID, err)
	}
	return nil
}

var _ dispatch.Store = (*Store)(nil)
