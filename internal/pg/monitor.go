package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
)

// ListWorkspaces names the active workspaces.
func (s *Store) ListWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_workspaces()`)
}

// counted runs a duty that answers how many rows it touched.
func (s *Store) counted(ctx context.Context, duty, key, workspace string) (int, error) {
	a, err := call[map[string]json.RawMessage](ctx, s, `select * from autopost.`+duty+`($1)`, workspace)
	if err != nil {
		return 0, fmt.Errorf("%s ws=%s: %w", duty, workspace, err)
	}
	var count int
	if err := json.Unmarshal(a[key], &count); err != nil {
		return 0, fmt.Errorf("decode %s of %s: %w", key, duty, err)
	}
	return count, nil
}

// ObserveClock compares the database's clock with the observer's.
func (s *Store) ObserveClock(ctx context.Context, observer string, elapsed *time.Duration) (time.Duration, error) {
	var ms *int64
	if elapsed != nil {
		since := elapsed.Milliseconds()
		ms = &since
	}
	answer, err := call[struct {
		JumpedMS int64 `json:"jumped_ms"`
	}](ctx, s, `select * from autopost.observe_clock($1, $2)`, observer, ms)
	if err != nil {
		return 0, fmt.Errorf("observe clock: %w", err)
	}
	return time.Duration(answer.JumpedMS) * time.Millisecond, nil
}

// RecoverSendingLeases settles deliveries whose lease ran out, or whose daemon fell silent.
func (s *Store) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_sending_leases", "recovered", workspace)
}

// RecoverClaimedLeases returns deliveries that stayed claimed to the queue.
func (s *Store) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_claimed_leases", "recovered", workspace)
}

// ExpireAuthLost ends deliveries that have waited too long for a refused credential.
func (s *Store) ExpireAuthLost(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "expire_auth_lost", "ended", workspace)
}

// CloseIngressFloods writes the events of dropped requests that were counted together.
func (s *Store) CloseIngressFloods(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "close_ingress_floods", "closed", workspace)
}

// RearmGates is the net below the gates.
func (s *Store) RearmGates(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "rearm_gates", "rearmed", workspace)
}

// EnsureEventPartitions makes the day partitions of events ahead of time.
func (s *Store) EnsureEventPartitions(ctx context.Context) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.ensure_event_partitions()`)
	if err != nil {
		return fmt.Errorf("ensure event partitions: %w", err)
	}
	return nil
}

// RefreshStatistics makes those of tables that have outgrown theirs.
func (s *Store) RefreshStatistics(ctx context.Context) ([]string, error) {
	a, err := call[struct{ Analyzed []string }](ctx, s, `select * from autopost.refresh_statistics()`)
	if err != nil {
		return nil, fmt.Errorf("refresh statistics: %w", err)
	}
	return a.Analyzed, nil
}

// ListAllWorkspaces names the workspaces, whatever their status.
func (s *Store) ListAllWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_all_workspaces()`)
}

// DropEventPartitions drops days of events whose time is over, a few a call. A drop
// that would have to wait is left for later.
func (s *Store) DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error) {
	a, err := call[struct {
		Dropped   int
		More      bool
		InDefault int `json:"in_default"`
	}](ctx, s, `select * from autopost.drop_event_partitions()`)
	if err != nil {
		return 0, false, 0, fmt.Errorf("drop event partitions: %w", err)
	}
	return a.Dropped, a.More, a.InDefault, nil
}

// purged runs a duty that removes some rows and answers whether there are more.
func (s *Store) purged(ctx context.Context, duty, workspace string) (int, bool, error) {
	a, err := call[struct {
		Purged int
		More   bool
	}](ctx, s, `select * from autopost.`+duty+`($1)`, workspace)
	if err != nil {
		return 0, false, fmt.Errorf("%s ws=%s: %w", duty, workspace, err)
	}
	return a.Purged, a.More, nil
}

// PurgeReceipts removes receipts whose time is over.
func (s *Store) PurgeReceipts(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_receipts", workspace)
}

// PurgeRuns removes ingest runs past their time.
func (s *Store) PurgeRuns(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_runs", workspace)
}

// PurgeSubmissions removes decided submissions past their time.
func (s *Store) PurgeSubmissions(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_submissions", workspace)
}

// PurgeDeliveries removes finished deliveries past their time, among the next after
// the given one ("" for the first); next is "" when all were looked at.
func (s *Store) PurgeDeliveries(ctx context.Context, workspace, after string) (purged int, next string, err error) {
	a, err := call[struct {
		Purged int
		After  string
	}](ctx, s, `select * from autopost.purge_deliveries($1, nullif($2, '')::uuid)`, workspace, after)
	if err != nil {
		return 0, "", fmt.Errorf("purge deliveries ws=%s: %w", workspace, err)
	}
	return a.Purged, a.After, nil
}

// PurgeMessages removes messages that nothing refers to any more, among the next after
// the given place ("" for the first); next is "" when all were looked at.
func (s *Store) PurgeMessages(ctx context.Context, workspace, after string) (purged int, next string, err error) {
	a, err := call[struct {
		Purged int
		After  json.RawMessage
	}](ctx, s, `select * from autopost.purge_messages($1, nullif($2, '')::jsonb)`, workspace, after)
	if err != nil {
		return 0, "", fmt.Errorf("purge messages ws=%s: %w", workspace, err)
	}
	if string(a.After) == "null" {
		return a.Purged, "", nil
	}
	return a.Purged, string(a.After), nil
}

// PurgeAuditLog removes the oldest rows of the audit log past their time.
func (s *Store) PurgeAuditLog(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_audit_log", workspace)
}

// AuditHead is the end of the audit log's chain; seq is 0 when nothing was recorded.
func (s *Store) AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error) {
	a, err := call[struct {
		Seq  int64
		Hash string
	}](ctx, s, `select * from autopost.audit_head($1)`, workspace)
	if err != nil {
		return 0, "", fmt.Errorf("audit head ws=%s: %w", workspace, err)
	}
	return a.Seq, a.Hash, nil
}

// CheckIntegrity names what was written on the last whole day and refers to nothing,
// an object for each kind, and what is wrong with the audit log; either is an alert.
func (s *Store) CheckIntegrity(ctx context.Context, workspace string) (orphans, audit []json.RawMessage, err error) {
	a, err := call[struct{ Orphans, Audit []json.RawMessage }](ctx, s, `select * from autopost.check_integrity($1)`, workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("check integrity ws=%s: %w", workspace, err)
	}
	return a.Orphans, a.Audit, nil
}

// UnreferencedOrigin is content of the media origin whose time is over.
type UnreferencedOrigin struct {
	BlobRef   string `json:"blob_ref"`
	OriginURL string `json:"origin_url"`
	SizeBytes int64  `json:"size_bytes"`
	// Forgotten says that it was forgotten before, and its row not removed yet.
	Forgotten bool `json:"forgotten"`
}

// ListUnreferencedOrigins names media that nothing refers to, longest unseen first.
func (s *Store) ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]UnreferencedOrigin, error) {
	list, err := call[[]UnreferencedOrigin](ctx, s, `select * from autopost.list_unreferenced_origins($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list unreferenced origins ws=%s: %w", workspace, err)
	}
	return list, nil
}

// ForgetMediaOrigin marks content as deleted, unless it is needed again; reason then
// says why not. With a token its object must go, and EndMediaRemoval then.
func (s *Store) ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error) {
	a, err := call[struct{ Token, Reason string }](ctx, s, `select * from autopost.forget_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return "", "", fmt.Errorf("forget media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return a.Token, a.Reason, nil
}

// BeginMediaRemoval bars content from being registered until EndMediaRemoval. The
// token is empty when a workspace holds it, or another daemon is at it.
func (s *Store) BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error) {
	a, err := call[struct{ Token string }](ctx, s, `select * from autopost.begin_media_removal($1)`, blobRef)
	if err != nil {
		return "", fmt.Errorf("begin media removal %s: %w", blobRef, err)
	}
	return a.Token, nil
}

// EndMediaRemoval says that the object is gone.
func (s *Store) EndMediaRemoval(ctx context.Context, blobRef, token string) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.end_media_removal($1, $2)`, blobRef, token); err != nil {
		return fmt.Errorf("end media removal %s: %w", blobRef, err)
	}
	return nil
}

// ListMediaRemovals names content whose removal was begun and not ended in time.
func (s *Store) ListMediaRemovals(ctx context.Context, limit int) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_media_removals($1)`, limit)
	if err != nil {
		return nil, fmt.Errorf("list media removals: %w", err)
	}
	return list, nil
}

// ListUnknownMedia picks from at most 1000 names those that no workspace has a row of.
func (s *Store) ListUnknownMedia(ctx context.Context, blobRefs []string) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_unknown_media($1)`, blobRefs)
	if err != nil {
		return nil, fmt.Errorf("list unknown media: %w", err)
	}
	return list, nil
}

// RemoveMediaOrigin removes the row of forgotten content whose object is gone.
func (s *Store) RemoveMediaOrigin(ctx context.Context, workspace, blobRef string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.remove_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return fmt.Errorf("remove media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return nil
}

// Finding is one invariant as verify found it: Sample holds offending rows.
type Finding struct {
	Invariant  string          `json:"invariant"`
	Title      string          `json:"title"`
	Violations int64           `json:"violations"`
	Sample     json.RawMessage `json:"sample"`
}

// Verify checks the invariants of a workspace; a finding without violations holds.
func (s *Store) Verify(ctx context.Context, workspace string) ([]Finding, error) {
	rows, err := s.pool.Query(ctx, `select invariant, title, violations, sample from autopost.verify($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// ListDueRefreshes names the credentials to renew now, the most urgent first; limit is 1 to 10,000.
func (s *Store) ListDueRefreshes(ctx context.Context, workspace string, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_due_refreshes($1, $2)`, workspace, limit)
}

// WarnExpiring warns once of each credential that expires soon and that nobody renews.
func (s *Store) WarnExpiring(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "warn_expiring", "warned", workspace)
}

// PurgeSealedSecrets removes sealed secrets that were replaced long enough ago.
func (s *Store) PurgeSealedSecrets(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_sealed_secrets", workspace)
}

// PurgeWebhookSends removes what result webhooks were told, past its time.
func (s *Store) PurgeWebhookSends(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_webhook_sends", workspace)
}

// Bot is an endpoint that a platform sends the updates of a bot to.
type Bot struct {
	EndpointID string `json:"endpoint_id"`
	Platform   string `json:"platform"`
	AuthRef    string `json:"auth_ref"`
}

// ListDueSubscriptions leases the endpoints of bots at whose subscriptions it is time to look.
func (s *Store) ListDueSubscriptions(ctx context.Context, workspace string, limit int) ([]Bot, error) {
	list, err := call[[]Bot](ctx, s, `select * from autopost.list_due_subscriptions($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list due subscriptions ws=%s: %w", workspace, err)
	}
	return list, nil
}

// BeginSubscription compares a subscription with what it should be. why is "" when it is that; else the platform is to
// be subscribed anew, with the secret of this SHA-256.
func (s *Store) BeginSubscription(ctx context.Context, workspace, endpoint string, want, seen autopost.Subscription, secretHash string) (why string, err error) {
	a, err := call[struct {
		Subscribe bool
		Why       string
	}](ctx, s, `select * from autopost.begin_subscription($1, $2, $3, $4, $5)`, workspace, endpoint, want, seen, secretHash)
	if err != nil {
		return "", fmt.Errorf("begin subscription endpoint=%s: %w", endpoint, err)
	}
	return a.Why, nil
}

// FinishSubscription says what became of a subscription: nil when the platform took it. false: another daemon has
// given it another secret meanwhile, or the endpoint is not there any more.
func (s *Store) FinishSubscription(ctx context.Context, workspace, endpoint, secretHash string, failure *autopost.Error) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.finish_subscription($1, $2, $3, $4)`, workspace, endpoint, secretHash, failure)
	if err != nil {
		return false, fmt.Errorf("finish subscription endpoint=%s: %w", endpoint, err)
	}
	return a.Applied, nil
}

// UnaskedChat is a chat of which nobody has said what a bot may do in it.
type UnaskedChat struct {
	Platform string    `json:"platform"`
	AuthRef  string    `json:"auth_ref"`
	TargetID string    `json:"target_id"`
	AskAt    time.Time `json:"ask_at"`
}

// ListUnaskedChats leases the chats whose rights are to be asked of their platforms.
func (s *Store) ListUnaskedChats(ctx context.Context, workspace string, limit int) ([]UnaskedChat, error) {
	list, err := call[[]UnaskedChat](ctx, s, `select * from autopost.list_unasked_chats($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list unasked chats ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RecordChatRights keeps what a platform answered of a chat. rights is "lost" or "regained" where channels paused or went on.
func (s *Store) RecordChatRights(ctx context.Context, workspace string, chat UnaskedChat, right autopost.Right) (rights string, err error) {
	a, err := call[struct{ Rights string }](ctx, s, `select * from autopost.record_chat_rights($1, $2, $3, $4, $5, $6)`,
		workspace, chat.Platform, chat.AuthRef, chat.TargetID, chat.AskAt, right)
	if err != nil {
		return "", fmt.Errorf("record rights in %s ws=%s: %w", chat.TargetID, workspace, err)
	}
	return a.Rights, nil
}

// AlertChange counts what a look raised and ended, and what is open after it.
type AlertChange struct{ Raised, Ended, Open int }

// CheckAlerts looks whether people must look at anything in a workspace.
func (s *Store) CheckAlerts(ctx context.Context, workspace string) (AlertChange, error) {
	change, err := call[AlertChange](ctx, s, `select * from autopost.check_alerts($1)`, workspace)
	if err != nil {
		return AlertChange{}, fmt.Errorf("check alerts ws=%s: %w", workspace, err)
	}
	return change, nil
}

// CheckInstallation looks at what concerns all workspaces.
func (s *Store) CheckInstallation(ctx context.Context) (AlertChange, error) {
	change, err := call[AlertChange](ctx, s, `select * from autopost.check_installation()`)
	if err != nil {
		return AlertChange{}, fmt.Errorf("check installation: %w", err)
	}
	return change, nil
}

// Notice is a message to a target of alerts, leased to the caller.
type Notice struct {
	MessageID string `json:"message_id"`
	Token     string `json:"token"`
	TargetID  string `json:"target_id"`
	// Kind is telegram, max, email or webhook.
	Kind    string          `json:"kind"`
	Address string          `json:"address"`
	AuthRef string          `json:"auth_ref"`
	Subject string          `json:"subject"`
	Text    string          `json:"text"`
	Body    json.RawMessage `json:"body"`
	Attempt int             `json:"attempt"`
}

// ClaimNotices leases the messages that targets of a workspace are to get now; limit is 1 to 100.
func (s *Store) ClaimNotices(ctx context.Context, workspace string, limit int) ([]Notice, error) {
	rows, err := query(ctx, s, `select * from autopost.claim_notices($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("claim notices ws=%s: %w", workspace, err)
	}
	notices := make([]Notice, len(rows))
	for i, row := range rows {
		if err := row.scan(&notices[i]); err != nil {
			return nil, fmt.Errorf("claim notices ws=%s: decode the answer: %w", workspace, err)
		}
	}
	return notices, nil
}

// FinishNotice tells what became of a message; failure is nil when it went out. One that
// somebody else finished, or claimed since, is left alone.
func (s *Store) FinishNotice(ctx context.Context, workspace, messageID, token string, failure *autopost.Error) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.finish_notice($1, $2, $3, $4)`, workspace, messageID, token, failure); err != nil {
		return fmt.Errorf("finish notice ws=%s message=%s: %w", workspace, messageID, err)
	}
	return nil
}

// DutyReport says how a duty of a monitor went.
type DutyReport struct {
	RunID  string
	Duty   string
	At     time.Time
	Config string
	// Err is "" when it could be done.
	Err string
}

// ReportDuty records what a duty came to.
func (s *Store) ReportDuty(ctx context.Context, r DutyReport) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.report_duty($1, $2, $3, $4, nullif($5, ''))`, r.RunID, r.Duty, r.At, r.Config, r.Err); err != nil {
		return fmt.Errorf("report duty %s: %w", r.Duty, err)
	}
	return nil
}
