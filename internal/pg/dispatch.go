package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
)

// Room is how many more rows of a group the caller can take; a name that is empty means any.
type Room struct {
	WorkspaceID string            `json:"workspace_id,omitempty"`
	Platform    autopost.Platform `json:"platform,omitempty"`
	RateGroup   string            `json:"rate_group,omitempty"`
	Room        int               `json:"room"`
}

// Work is the answer of ready_work. NextIn is nil when nothing waits.
type Work struct {
	Ready  []Part
	NextIn *time.Duration
}

// Part is a workspace and one of its platforms.
type Part struct {
	WorkspaceID string
	Platform    autopost.Platform
}

// ReadyWork names the parts of workspaces of which a claim could give something now, a ring from the
// workspace that follows after, and says when one will. Groups without room are passed over.
func (s *Store) ReadyWork(ctx context.Context, after string, limit int, rooms []Room) (Work, error) {
	a, err := call[struct {
		Workspaces []string
		Platforms  map[string][]autopost.Platform
		NextWakeMS *int64 `json:"next_wake_ms"`
	}](ctx, s, `select * from autopost.ready_work($1, $2, $3)`, after, limit, list(rooms))
	if err != nil {
		return Work{}, err
	}
	work := Work{NextIn: inMilliseconds(a.NextWakeMS)}
	for _, workspace := range a.Workspaces {
		for _, platform := range a.Platforms[workspace] {
			work.Ready = append(work.Ready, Part{workspace, platform})
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

// list is never null for the database.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

const claimColumns = `workspace_id, delivery_id, message_id, channel_id, platform, target_id, auth_ref, rate_group, attempt, claim_token,
	sending_lease_until, send_at, rendered_text, render_meta, payload, settings, trace_id, on_unknown, unknown_outcomes, last_call_at,
	last_provider_message_id, known_posts, due_at, scheduled_for`

// ClaimWithin leases up to limit due deliveries of a workspace to a run, of each group no more than rooms say.
func (s *Store) ClaimWithin(ctx context.Context, workspace, runID string, limit int, rooms []Room) ([]autopost.Delivery, error) {
	const claim = `select ` + claimColumns + ` from autopost.claim_within($1, $2, $3, $4)`
	args, err := jsonArguments([]any{workspace, runID, limit, list(rooms)})
	if err != nil {
		return nil, err
	}
	ask := func() ([]autopost.Delivery, error) {
		rows, err := s.pool.Query(ctx, claim, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanDelivery)
	}
	deliveries, err := ask()
	if hasState(err, stateFeatureNotSupported) {
		deliveries, err = ask()
	}
	if err != nil {
		return nil, fmt.Errorf("claim deliveries ws=%s: %w", workspace, translate(err))
	}
	return deliveries, nil
}

func scanDelivery(row pgx.CollectableRow) (autopost.Delivery, error) {
	var d autopost.Delivery
	err := row.Scan(&d.WorkspaceID, &d.DeliveryID, &d.MessageID, &d.ChannelID, &d.Platform, &d.TargetID, &d.AuthRef, &d.RateGroup, &d.Attempt,
		&d.ClaimToken, &d.LeaseUntil, &d.SendAt, &d.RenderedText, &d.RenderMeta, &d.Payload, &d.Settings, &d.TraceID, &d.OnUnknown,
		&d.UnknownOutcomes, &d.LastCallAt, &d.LastProviderMessageID, &d.KnownPosts, &d.DueAt, &d.ScheduledFor)
	return d, err
}

// Claim is an item of start_call_batch.
type Claim struct {
	DeliveryID string `json:"delivery_id"`
	ClaimToken string `json:"claim_token"`
}

// Settlement is an item of commit_outcome_batch.
type Settlement struct {
	DeliveryID string           `json:"delivery_id"`
	ClaimToken string           `json:"claim_token"`
	Outcome    autopost.Outcome `json:"outcome"`
}

// Start is the answer of start_call, its instants as waits from now by the database's clock.
type Start struct {
	Applied bool
	// Limited says that there is a slot; SendIn is negative when it has just passed.
	Limited  bool
	SendIn   time.Duration
	Deadline time.Duration
	Reason   string
}

// Progress is the answer of record_series_progress, its instant as a wait from now by the database's clock.
type Progress struct {
	Applied bool
	// Limited says that the next step has a slot; SendIn is negative when it has just passed.
	Limited bool
	SendIn  time.Duration
	Reason  string
}

// Commit is the answer of commit_outcome.
type Commit struct {
	Applied     bool
	Status      string
	Reason      string
	NextRetryAt *time.Time
}

// until returns how far at lies behind the database's now, at least zero.
func until(at *time.Time, now time.Time) time.Duration {
	if at == nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// StartAct records that the call of an act begins, or learns why it must not.
func (s *Store) StartAct(ctx context.Context, workspace, actID, claimToken string) (Start, error) {
	a, err := call[startAnswer](ctx, s, `select * from autopost.start_act($1, $2, $3)`, workspace, actID, claimToken)
	if err != nil {
		return Start{}, fmt.Errorf("start act id=%s: %w", actID, err)
	}
	return a.start(), nil
}

// startAnswer is an answer of the functions that begin a call.
type startAnswer struct {
	Applied  bool
	Reason   string
	Now      time.Time
	SendAt   *time.Time `json:"send_at"`
	Deadline *time.Time
}

func (a startAnswer) start() Start {
	start := Start{Applied: a.Applied, Deadline: until(a.Deadline, a.Now), Reason: a.Reason}
	start.Limited, start.SendIn = slot(a.SendAt, a.Now)
	return start
}

// slot tells whether a call has a slot, and how far it lies behind the database's now.
func slot(at *time.Time, now time.Time) (limited bool, in time.Duration) {
	if at == nil {
		return false, 0
	}
	return true, at.Sub(now)
}

// StartCallBatch records that the calls of claims begin, or learns why they must not; the answers are in the order of the claims.
func (s *Store) StartCallBatch(ctx context.Context, workspace string, claims []Claim) ([]Start, error) {
	answers, err := call[[]startAnswer](ctx, s, `select * from autopost.start_call_batch($1, $2)`, workspace, claims)
	if err != nil {
		return nil, fmt.Errorf("start calls ws=%s: %w", workspace, err)
	}
	starts := make([]Start, 0, len(answers))
	for _, a := range answers {
		starts = append(starts, a.start())
	}
	return starts, nil
}

// RecordSeriesProgress keeps an acknowledged step.
func (s *Store) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (Progress, error) {
	a, err := call[struct {
		Applied bool
		Reason  string
		Now     time.Time
		SendAt  *time.Time `json:"send_at"`
	}](ctx, s, `select * from autopost.record_series_progress($1, $2, $3, $4)`, workspace, deliveryID, claimToken, ack)
	if err != nil {
		return Progress{}, fmt.Errorf("record series progress delivery=%s: %w", deliveryID, err)
	}
	progress := Progress{Applied: a.Applied, Reason: a.Reason}
	progress.Limited, progress.SendIn = slot(a.SendAt, a.Now)
	return progress, nil
}

// ExtendLease renews a lease to seconds from now.
func (s *Store) ExtendLease(ctx context.Context, workspace, deliveryID, claimToken string, seconds int) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.extend_lease($1, $2, $3, $4)`, workspace, deliveryID, claimToken, seconds)
	if err != nil {
		return false, fmt.Errorf("extend lease delivery=%s: %w", deliveryID, err)
	}
	return a.Applied, nil
}

// ReleaseClaims hands back claims whose call has not begun.
func (s *Store) ReleaseClaims(ctx context.Context, workspace string, tokens []string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.release_claims($1, $2)`, workspace, tokens)
	if err != nil {
		return fmt.Errorf("release claims ws=%s: %w", workspace, err)
	}
	return nil
}

// ReleaseLost hands back what a run has claimed and does not know of; known are the tokens of all that it has in hand.
func (s *Store) ReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, err error) {
	a, err := call[struct{ Released int }](ctx, s, `select * from autopost.release_lost($1, $2, $3)`, workspace, runID, list(known))
	if err != nil {
		return 0, fmt.Errorf("release lost claims ws=%s: %w", workspace, err)
	}
	return a.Released, nil
}

// CommitOutcomeBatch settles claims, and answers in their order; asked again with the same tokens it answers the same.
func (s *Store) CommitOutcomeBatch(ctx context.Context, workspace string, settlements []Settlement) ([]Commit, error) {
	answers, err := call[[]struct {
		Applied     bool
		Status      string
		Reason      string
		NextRetryAt instant `json:"next_retry_at"`
	}](ctx, s, `select * from autopost.commit_outcome_batch($1, $2)`, workspace, settlements)
	if err != nil {
		return nil, fmt.Errorf("commit outcomes ws=%s: %w", workspace, err)
	}
	commits := make([]Commit, 0, len(answers))
	for _, a := range answers {
		commits = append(commits, Commit{Applied: a.Applied, Status: a.Status, Reason: a.Reason, NextRetryAt: a.NextRetryAt.Time})
	}
	return commits, nil
}

// ReadyActWorkspaces names workspaces in which something is to be done now to a post that was sent.
func (s *Store) ReadyActWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_act_workspaces($1)`, limit)
}

const actColumns = `workspace_id, act_id, kind, attempt, claim_token, lease_until, delivery_id, message_id, channel_id, platform, target_id, auth_ref,
	rate_group, rendered_text, render_meta, payload, settings, trace_id`

// ClaimActs leases up to limit due acts of a workspace to a run.
func (s *Store) ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.Act, error) {
	rows, err := s.pool.Query(ctx, `select `+actColumns+` from autopost.claim_acts($1, $2, $3)`, workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim acts ws=%s: %w", workspace, translate(err))
	}
	acts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (autopost.Act, error) {
		var a autopost.Act
		err := row.Scan(&a.WorkspaceID, &a.ActID, &a.Kind, &a.Attempt, &a.ClaimToken, &a.LeaseUntil, &a.DeliveryID, &a.MessageID, &a.ChannelID, &a.Platform,
			&a.TargetID, &a.AuthRef, &a.RateGroup, &a.RenderedText, &a.RenderMeta, &a.Payload, &a.Settings, &a.TraceID)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim acts ws=%s: %w", workspace, translate(err))
	}
	return acts, nil
}

// CommitAct settles a claimed act; no failure is a success.
func (s *Store) CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error) (Commit, error) {
	a, err := call[struct {
		Applied bool
		Status  string
		Reason  string
		NextAt  *time.Time `json:"next_at"`
	}](ctx, s, `select * from autopost.commit_act($1, $2, $3, $4)`, workspace, actID, claimToken, map[string]any{"ok": failure == nil, "error": failure})
	if err != nil {
		return Commit{}, fmt.Errorf("commit act id=%s: %w", actID, err)
	}
	return Commit{Applied: a.Applied, Status: a.Status, Reason: a.Reason, NextRetryAt: a.NextAt}, nil
}

// instant decodes an instant of the database; "infinity" (a held delivery) is none.
type instant struct{ Time *time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (i *instant) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" || string(raw) == `"infinity"` {
		return nil
	}
	i.Time = new(time.Time)
	return json.Unmarshal(raw, i.Time)
}

// TouchRun is the heartbeat of a daemon on host, the last one where it has ended.
func (s *Store) TouchRun(ctx context.Context, runID, host string, ended bool) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.touch_run($1, nullif($2, ''), $3)`, runID, host, ended)
	if err != nil {
		return fmt.Errorf("touch run %s: %w", runID, err)
	}
	return nil
}

// SealedSecret is a row of autopost.sealed_secrets; the bytes are base64 on the way.
type SealedSecret struct {
	AuthRef    string `json:"auth_ref,omitempty"`
	Version    int    `json:"version"`
	KeyID      string `json:"key_id"`
	WrappedKey []byte `json:"wrapped_key"`
	Sealed     []byte `json:"sealed"`
	// Source is the digest of the first secret that it was renewed from, "" where there is none.
	Source string `json:"source"`
}

// Credential is what get_credential answers.
type Credential struct {
	Platform    string `json:"platform"`
	SecretRef   string `json:"secret_ref"`
	LastVersion int    `json:"last_version"`
	// Stale says that what is in force has expired.
	Stale  bool          `json:"stale"`
	Sealed *SealedSecret `json:"sealed"`
}

// GetCredential returns nil for a credential that is not bound.
func (s *Store) GetCredential(ctx context.Context, workspace, authRef string) (*Credential, error) {
	c, err := call[*Credential](ctx, s, `select * from autopost.get_credential($1, $2)`, workspace, authRef)
	if err != nil {
		return nil, fmt.Errorf("get credential ws=%s: %w", workspace, err)
	}
	return c, nil
}

// RefreshLease is what begin_refresh answers.
type RefreshLease struct {
	Granted bool `json:"granted"`
	// Reason says why not: unknown, other, newer, leased, waiting or lost.
	Reason string `json:"reason"`
	Token  string `json:"token"`
	// Version is what the new secret is sealed under.
	Version int `json:"version"`
	// WaitMS is how long the lease lasts, or when to look again.
	WaitMS int64           `json:"wait_ms"`
	Error  *autopost.Error `json:"error"`
}

// SecretInUse says which secret of a credential is meant.
type SecretInUse struct {
	AuthRef string
	// Version is 0 for the first one, of the digest Source.
	Version int
	Source  string
}

// BeginRefresh asks to renew a secret. refused is the failure for which it is asked, nil to renew ahead of time.
func (s *Store) BeginRefresh(ctx context.Context, workspace string, use SecretInUse, refused *autopost.Error) (RefreshLease, error) {
	l, err := call[RefreshLease](ctx, s, `select * from autopost.begin_refresh($1, $2, $3, $4, $5)`, workspace, use.AuthRef, use.Version, use.Source, refused)
	if err != nil {
		return l, fmt.Errorf("begin refresh ws=%s: %w", workspace, err)
	}
	return l, nil
}

// FinishRefresh puts a renewed secret in force; false means that another one came first.
func (s *Store) FinishRefresh(ctx context.Context, workspace, authRef string, sealed SealedSecret, validFor time.Duration) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.finish_refresh($1, $2, $3, $4)`, workspace, authRef, sealed, wholeSeconds(validFor))
	if err != nil {
		return false, fmt.Errorf("finish refresh ws=%s: %w", workspace, err)
	}
	return a.Applied, nil
}

// FailRefresh records why the renewal that the token stands for came to nothing.
func (s *Store) FailRefresh(ctx context.Context, workspace string, use SecretInUse, token string, failure autopost.Error) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.fail_refresh($1, $2, $3, $4, $5, $6)`,
		workspace, use.AuthRef, token, use.Version, use.Source, failure)
	if err != nil {
		return fmt.Errorf("fail refresh ws=%s: %w", workspace, err)
	}
	return nil
}

// wholeSeconds is nil for no duration.
func wholeSeconds(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(d / time.Second)
	return &seconds
}

// texts runs a call that answers rows of one text.
func (s *Store) texts(ctx context.Context, sql string, args ...any) ([]string, error) {
	answers, err := query(ctx, s, sql, args...)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(answers))
	for _, a := range answers {
		list = append(list, string(a.raw))
	}
	return list, nil
}

// ReadyWebhookWorkspaces names workspaces whose events are to be read for result webhooks, or in which a call is due.
func (s *Store) ReadyWebhookWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_webhook_workspaces($1)`, limit)
}

// EnqueueWebhooks reads on in the events of a workspace and queues what its result webhooks are to be told; more says that there are others.
func (s *Store) EnqueueWebhooks(ctx context.Context, workspace string) (more bool, err error) {
	a, err := call[struct{ More bool }](ctx, s, `select * from autopost.enqueue_webhooks($1)`, workspace)
	if err != nil {
		return false, fmt.Errorf("enqueue webhooks ws=%s: %w", workspace, err)
	}
	return a.More, nil
}

// WebhookCall is a call of a result webhook that is due.
type WebhookCall struct {
	WebhookID  string   `json:"webhook_id"`
	EventID    string   `json:"event_id"`
	ClaimToken string   `json:"claim_token"`
	URL        string   `json:"url"`
	AuthRefs   []string `json:"auth_refs"`
	TimeoutMS  int64    `json:"timeout_ms"`
	Body       string   `json:"body"`
}

// ClaimWebhooks takes at most limit calls that are due.
func (s *Store) ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]WebhookCall, error) {
	list, err := call[[]WebhookCall](ctx, s, `select * from autopost.claim_webhooks($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("claim webhooks ws=%s: %w", workspace, err)
	}
	return list, nil
}

// WebhookOutcome is what a call of a result webhook came to, an item of commit_webhook_batch.
type WebhookOutcome struct {
	WebhookID  string `json:"webhook_id"`
	EventID    string `json:"event_id"`
	ClaimToken string `json:"claim_token"`
	Outcome    struct {
		HTTPStatus   int    `json:"http_status,omitempty"`
		RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
		Error        string `json:"error,omitempty"`
	} `json:"outcome"`
}

// CommitWebhookBatch records what calls of result webhooks came to; a claim that is over is no error.
func (s *Store) CommitWebhookBatch(ctx context.Context, workspace string, outcomes []WebhookOutcome) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.commit_webhook_batch($1, $2)`, workspace, outcomes)
	if err != nil {
		return fmt.Errorf("commit webhooks ws=%s: %w", workspace, err)
	}
	return nil
}
