package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/monitor"
)

// ListWorkspaces returns the active workspaces.
func (s *Store) ListWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_workspaces()`)
}

// counted runs a function that answers with a count under key.
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

// ObserveClock compares the clock of the database with the time that has passed for the observer since its last answered
// call; nil at the first. It returns how far the database's clock has jumped meanwhile.
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

// RecoverSendingLeases ends leases that expired or whose daemon is silent, and counts the deliveries.
func (s *Store) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_sending_leases", "recovered", workspace)
}

// RecoverClaimedLeases returns deliveries with an old claim to the queue, and counts them.
func (s *Store) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_claimed_leases", "recovered", workspace)
}

// ExpireSubmissions ends submissions that waited too long for a decision.
func (s *Store) ExpireSubmissions(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "expire_submissions", "expired", workspace)
}

// ExpireAuthLost ends deliveries that have waited too long for a refused credential.
func (s *Store) ExpireAuthLost(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "expire_auth_lost", "ended", workspace)
}

// CloseIngressFloods writes the events of drop counters whose period is over, and counts them.
func (s *Store) CloseIngressFloods(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "close_ingress_floods", "closed", workspace)
}

// RearmGates opens the gates of channels with due deliveries whose wake-up was lost, and counts them.
func (s *Store) RearmGates(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "rearm_gates", "rearmed", workspace)
}

// EnsureEventPartitions creates the missing event partitions of the coming days.
func (s *Store) EnsureEventPartitions(ctx context.Context) error {
	_, err := call[json.RawMessage](ctx, s.onCoordinator(), `select * from autopost.ensure_event_partitions()`)
	if err != nil {
		return fmt.Errorf("ensure event partitions: %w", err)
	}
	return nil
}

// RefreshStatistics analyzes the tables that have outgrown their statistics, and returns their names.
func (s *Store) RefreshStatistics(ctx context.Context) ([]string, error) {
	a, err := call[struct{ Analyzed []string }](ctx, s, `select * from autopost.refresh_statistics()`)
	if err != nil {
		return nil, fmt.Errorf("refresh statistics: %w", err)
	}
	return a.Analyzed, nil
}

// ListServedWorkspaces returns the active workspaces that a daemon at this node serves; with all, also the other ones.
func (s *Store) ListServedWorkspaces(ctx context.Context, all bool) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_served_workspaces($1)`, all)
}

// ListAllWorkspaces returns the active and the paused workspaces.
func (s *Store) ListAllWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_all_workspaces()`)
}

// DropEventPartitions drops some expired days of events. It postpones a drop that would have to wait for a lock.
// inDefault counts rows outside every day's partition.
func (s *Store) DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error) {
	a, err := call[struct {
		Dropped   int
		More      bool
		InDefault int `json:"in_default"`
	}](ctx, s.onCoordinator(), `select * from autopost.drop_event_partitions()`)
	if err != nil {
		return 0, false, 0, fmt.Errorf("drop event partitions: %w", err)
	}
	return a.Dropped, a.More, a.InDefault, nil
}

// purged runs a function that removes some rows and answers whether there are more.
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

// PurgeReceipts removes some expired receipts.
func (s *Store) PurgeReceipts(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_receipts", workspace)
}

// PurgeRuns removes some expired ingest runs.
func (s *Store) PurgeRuns(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_runs", workspace)
}

// PurgeSubmissions removes some expired submissions that are decided.
func (s *Store) PurgeSubmissions(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_submissions", workspace)
}

// PurgeDeliveries removes expired final deliveries among the next ones behind after ("" for the first call); next is
// "" at the end.
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

// PurgeMessages removes messages without references among the next ones behind after ("" for the first call); next is
// "" at the end.
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

// PurgeAuditLog removes some expired rows of the audit log, the oldest first.
func (s *Store) PurgeAuditLog(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_audit_log", workspace)
}

// AuditHead returns the last row of the audit log; seq is 0 if the log is empty.
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

// VerifyAudit checks the chain of the audit log. head, if not nil, is an earlier answer of audit_head.
func (s *Store) VerifyAudit(ctx context.Context, workspace string, head any) (api.AuditVerdict, error) {
	a, err := call[api.AuditVerdict](ctx, s, `select * from autopost.verify_audit($1, $2)`, workspace, head)
	if err != nil {
		return a, fmt.Errorf("verify audit ws=%s: %w", workspace, err)
	}
	return a, nil
}

// CheckIntegrity returns the rows of the last whole day that refer to nothing, as an object per kind, and the faults of
// the audit log. Each is also an alert.
func (s *Store) CheckIntegrity(ctx context.Context, workspace string) (orphans, audit []json.RawMessage, err error) {
	a, err := call[struct{ Orphans, Audit []json.RawMessage }](ctx, s, `select * from autopost.check_integrity($1)`, workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("check integrity ws=%s: %w", workspace, err)
	}
	return a.Orphans, a.Audit, nil
}

// ListUnreferencedOrigins returns media without references, the longest unused first.
func (s *Store) ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]monitor.Origin, error) {
	list, err := call[[]monitor.Origin](ctx, s, `select * from autopost.list_unreferenced_origins($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list unreferenced origins ws=%s: %w", workspace, err)
	}
	return list, nil
}

// ForgetMediaOrigin marks a medium as deleted; a reason means that it is needed again. A token means that the object
// must be removed before EndMediaRemoval.
func (s *Store) ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error) {
	a, err := call[struct{ Token, Reason string }](ctx, s, `select * from autopost.forget_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return "", "", fmt.Errorf("forget media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return a.Token, a.Reason, nil
}

// BeginMediaRemoval blocks the registration of content until EndMediaRemoval. The token is empty if a workspace holds
// the content, or if another daemon removes it.
func (s *Store) BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error) {
	a, err := call[struct{ Token string }](ctx, s, `select * from autopost.begin_media_removal($1)`, blobRef)
	if err != nil {
		return "", fmt.Errorf("begin media removal %s: %w", blobRef, err)
	}
	return a.Token, nil
}

// EndMediaRemoval records that the object is removed.
func (s *Store) EndMediaRemoval(ctx context.Context, blobRef, token string) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.end_media_removal($1, $2)`, blobRef, token); err != nil {
		return fmt.Errorf("end media removal %s: %w", blobRef, err)
	}
	return nil
}

// ListMediaRemovals returns content whose removal was begun and not finished in time.
func (s *Store) ListMediaRemovals(ctx context.Context, limit int) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_media_removals($1)`, limit)
	if err != nil {
		return nil, fmt.Errorf("list media removals: %w", err)
	}
	return list, nil
}

// ListUnknownMedia returns those of at most 1000 names that no workspace has a row of.
func (s *Store) ListUnknownMedia(ctx context.Context, blobRefs []string) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_unknown_media($1)`, blobRefs)
	if err != nil {
		return nil, fmt.Errorf("list unknown media: %w", err)
	}
	return list, nil
}

// RemoveMediaOrigin removes the row of a deleted medium whose object is removed.
func (s *Store) RemoveMediaOrigin(ctx context.Context, workspace, blobRef string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.remove_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return fmt.Errorf("remove media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return nil
}

// Finding is the result of verify for one invariant. Sample has offending rows.
type Finding struct {
	Invariant  string          `json:"invariant"`
	Title      string          `json:"title"`
	Violations int64           `json:"violations"`
	Sample     json.RawMessage `json:"sample"`
}

// Verify checks the invariants of a workspace. A finding without violations is a success.
func (s *Store) Verify(ctx context.Context, workspace string) ([]Finding, error) {
	rows, err := s.calls.Query(ctx, `select invariant, title, violations, sample from autopost.verify($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// ListDueRefreshes returns the credentials to renew now, the most urgent first; limit is 1 to 10,000.
func (s *Store) ListDueRefreshes(ctx context.Context, workspace string, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_due_refreshes($1, $2)`, workspace, limit)
}

// WarnExpiring warns once of each expiring credential without automatic renewal, and counts the warnings.
func (s *Store) WarnExpiring(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "warn_expiring", "warned", workspace)
}

// PurgeSealedSecrets removes some sealed secrets that were replaced long ago.
func (s *Store) PurgeSealedSecrets(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_sealed_secrets", workspace)
}

// PurgeConversations removes some expired conversations of the shop bot.
func (s *Store) PurgeConversations(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_conversations", workspace)
}

// PurgeWebhookSends removes some expired calls of result webhooks.
func (s *Store) PurgeWebhookSends(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_webhook_sends", workspace)
}

// ListDueSubscriptions leases endpoints whose bot subscriptions must be checked.
func (s *Store) ListDueSubscriptions(ctx context.Context, workspace string, limit int) ([]monitor.Bot, error) {
	list, err := call[[]monitor.Bot](ctx, s, `select * from autopost.list_due_subscriptions($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list due subscriptions ws=%s: %w", workspace, err)
	}
	return list, nil
}

// BeginSubscription compares a subscription with the wanted one. why is "" if they are equal; otherwise the caller
// subscribes with the secret of this SHA-256.
func (s *Store) BeginSubscription(ctx context.Context, workspace string, check monitor.SubscriptionCheck) (why string, err error) {
	a, err := call[struct {
		Subscribe bool
		Why       string
	}](ctx, s, `select * from autopost.begin_subscription($1, $2, $3, $4, $5)`, workspace, check.EndpointID, check.Want, check.Seen, check.SecretHash)
	if err != nil {
		return "", fmt.Errorf("begin subscription endpoint=%s: %w", check.EndpointID, err)
	}
	return a.Why, nil
}

// FinishSubscription records the result of a subscription; a nil failure means that the platform accepted it. It returns
// false if another daemon has set another secret, or if the endpoint no longer exists.
func (s *Store) FinishSubscription(ctx context.Context, workspace, endpoint, secretHash string, failure *autopost.Error) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.finish_subscription($1, $2, $3, $4)`, workspace, endpoint, secretHash, failure)
	if err != nil {
		return false, fmt.Errorf("finish subscription endpoint=%s: %w", endpoint, err)
	}
	return a.Applied, nil
}

// ListUnaskedChats leases chats whose rights are unknown.
func (s *Store) ListUnaskedChats(ctx context.Context, workspace string, limit int) ([]monitor.Chat, error) {
	list, err := call[[]monitor.Chat](ctx, s, `select * from autopost.list_unasked_chats($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list unasked chats ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RecordChatRights records the rights in a chat. rights is "lost" or "regained" if channels were paused or resumed.
func (s *Store) RecordChatRights(ctx context.Context, workspace string, chat monitor.Chat, right autopost.Right) (rights string, err error) {
	a, err := call[struct{ Rights string }](ctx, s, `select * from autopost.record_chat_rights($1, $2, $3, $4, $5, $6)`,
		workspace, chat.Platform, chat.AuthRef, chat.TargetID, chat.AskAt, right)
	if err != nil {
		return "", fmt.Errorf("record rights in %s ws=%s: %w", chat.TargetID, workspace, err)
	}
	return a.Rights, nil
}

// CheckAlerts raises and ends the alerts of a workspace.
func (s *Store) CheckAlerts(ctx context.Context, workspace string) (monitor.AlertChange, error) {
	change, err := call[monitor.AlertChange](ctx, s, `select * from autopost.check_alerts($1)`, workspace)
	if err != nil {
		return monitor.AlertChange{}, fmt.Errorf("check alerts ws=%s: %w", workspace, err)
	}
	return change, nil
}

// CheckInstallation raises and ends the alerts that concern all workspaces.
func (s *Store) CheckInstallation(ctx context.Context) (monitor.AlertChange, error) {
	change, err := call[monitor.AlertChange](ctx, s, `select * from autopost.check_installation()`)
	if err != nil {
		return monitor.AlertChange{}, fmt.Errorf("check installation: %w", err)
	}
	return change, nil
}

// ClaimNotices leases due notices of a workspace; limit is 1 to 100.
func (s *Store) ClaimNotices(ctx context.Context, workspace string, limit int) ([]autopost.Notice, error) {
	rows, err := query(ctx, s, `select * from autopost.claim_notices($1, $2, nullif($3, ''))`, workspace, limit, s.runID)
	if err != nil {
		return nil, fmt.Errorf("claim notices ws=%s: %w", workspace, err)
	}
	notices := make([]autopost.Notice, len(rows))
	for i, row := range rows {
		if err := row.scan(&notices[i]); err != nil {
			return nil, fmt.Errorf("claim notices ws=%s: decode the answer: %w", workspace, err)
		}
	}
	return notices, nil
}

// FinishNotice records the result of a notice; a nil failure means that it was sent. It changes nothing if the notice was
// finished or claimed since.
func (s *Store) FinishNotice(ctx context.Context, workspace, messageID, token string, failure *autopost.Error) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.finish_notice($1, $2, $3, $4)`, workspace, messageID, token, failure); err != nil {
		return fmt.Errorf("finish notice ws=%s message=%s: %w", workspace, messageID, err)
	}
	return nil
}

// ReadyModerationWorkspaces returns up to limit workspaces with a due call to a moderators' chat.
func (s *Store) ReadyModerationWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_moderation_workspaces($1)`, limit)
}

// ClaimModeration leases due calls to moderators' chats of a workspace; limit is 1 to 100.
func (s *Store) ClaimModeration(ctx context.Context, workspace string, limit int) ([]autopost.ModerationCall, error) {
	rows, err := query(ctx, s, `select * from autopost.claim_moderation($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("claim moderation ws=%s: %w", workspace, err)
	}
	calls := make([]autopost.ModerationCall, len(rows))
	for i, row := range rows {
		if err := row.scan(&calls[i]); err != nil {
			return nil, fmt.Errorf("claim moderation ws=%s: decode the answer: %w", workspace, err)
		}
	}
	return calls, nil
}

// FinishModeration records the outcome of a call to a moderators' chat. It changes nothing if the call was finished or
// claimed since.
func (s *Store) FinishModeration(ctx context.Context, workspace string, c autopost.ModerationCall, outcome autopost.Outcome) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.finish_moderation($1, $2, $3, $4, $5)`, workspace, string(c.Kind), c.ID, c.Token, outcome); err != nil {
		return fmt.Errorf("finish moderation ws=%s id=%s: %w", workspace, c.ID, err)
	}
	return nil
}

// ReportDuty records the result of a duty.
func (s *Store) ReportDuty(ctx context.Context, r monitor.DutyReport) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.report_duty($1, $2, $3, $4, nullif($5, ''))`, r.RunID, r.Duty, r.At, r.Config, r.Err); err != nil {
		return fmt.Errorf("report duty %s: %w", r.Duty, err)
	}
	return nil
}

var _ monitor.Store = (*Store)(nil)
