package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost/internal/api"
	"autopost/internal/problem"
)

// Fields are the changed columns of a row of configuration; null restores the default.
type Fields map[string]json.RawMessage

// PutAnswer is the answer to a change or removal of a row of configuration.
type PutAnswer struct {
	whole

	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason is "unchanged", "invalid" with Errors, or the obstacle to a removal, if nothing was changed.
	Reason string          `json:"reason"`
	Errors []problem.Fault `json:"errors"`
	// Before and After contain the changed columns.
	Before Fields `json:"before"`
	After  Fields `json:"after"`
	// SubmissionID or DeliveryID is set if Reason is duplicate: it has the same event, or the same content in the channel.
	SubmissionID string `json:"submission_id"`
	DeliveryID   string `json:"delivery_id"`
	// Note is a warning; usually "".
	Note string `json:"note"`
	// References counts the rows that refer to the row to remove, by table.
	References map[string]int `json:"references"`
	// Bound reports whether the named credential exists, for kinds that report it.
	Bound *bool `json:"bound"`
}

// PutWorkspace adds or changes the workspace of a.
func (s *Store) PutWorkspace(ctx context.Context, a OperatorAction, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_workspace(@workspace, @fields, @operator, @reason, @dry_run)`, args{"fields": fields})
}

// SetWorkspaceStatus makes the workspace of a active, paused or disabled.
func (s *Store) SetWorkspaceStatus(ctx context.Context, a OperatorAction, status string) (PutAnswer, error) {
	return Decode[PutAnswer](s.write(ctx, a, `autopost.set_workspace_status(@workspace, @status, @operator, @reason, @dry_run)`, args{"status": status}))
}

// PutChannel adds or changes a channel.
func (s *Store) PutChannel(ctx context.Context, a OperatorAction, channel string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_channel(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": channel, "fields": fields})
}

// RemoveChannel removes a disabled channel without references.
func (s *Store) RemoveChannel(ctx context.Context, a OperatorAction, channel string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_channel(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": channel})
}

// PutRateGroup adds or changes the limit of a rate group.
func (s *Store) PutRateGroup(ctx context.Context, a OperatorAction, platform, group string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_rate_group(@workspace, @platform, @group, @fields, @operator, @reason, @dry_run)`, args{"platform": platform, "group": group, "fields": fields})
}

// quotaKey splits the id of a quota, SUBJECT/SECONDS.
const quotaKey = `regexp_replace(@id, '/[^/]*$', ''), substring(@id from '/(\d{1,9})$')::int`

// QuotaID returns the id of a quota: SUBJECT/SECONDS. The subject is "channel:ID" or "group:PLATFORM/GROUP".
func QuotaID(subject string, window time.Duration) string {
	return fmt.Sprintf("%s/%d", subject, int(window/time.Second))
}

// PutQuota adds or changes a quota.
func (s *Store) PutQuota(ctx context.Context, a OperatorAction, quota string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_quota(@workspace, `+quotaKey+`, @fields, @operator, @reason, @dry_run)`, args{"id": quota, "fields": fields})
}

// DeleteQuota removes a quota.
func (s *Store) DeleteQuota(ctx context.Context, a OperatorAction, quota string) (Written, error) {
	return s.write(ctx, a, `autopost.delete_quota(@workspace, `+quotaKey+`, @operator, @reason, @dry_run)`, args{"id": quota})
}

// PutBudget limits the monthly cost of a credential.
func (s *Store) PutBudget(ctx context.Context, a OperatorAction, authRef string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_budget(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": authRef, "fields": fields})
}

// policyKey splits the id of a retry policy, PLATFORM/CODE.
const policyKey = `split_part(@id, '/', 1), nullif(substring(@id from position('/' in @id) + 1), @id)`

// PutRetryPolicy adds, changes or removes a retry policy of the workspace. policy is PLATFORM/CODE.
func (s *Store) PutRetryPolicy(ctx context.Context, a OperatorAction, policy string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_retry_policy(@workspace, `+policyKey+`, @fields, @operator, @reason, @dry_run)`, args{"id": policy, "fields": fields})
}

// PutCredentialBinding binds a credential to the place of its secret.
func (s *Store) PutCredentialBinding(ctx context.Context, a OperatorAction, authRef string, fields any) (PutAnswer, error) {
	return Decode[PutAnswer](s.write(ctx, a, `autopost.put_credential_binding(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": authRef, "fields": fields}))
}

// ConfigItem is one object of a configuration.
type ConfigItem = api.ConfigItem

// ConfigChange is the change of one object of a configuration.
type ConfigChange = api.ConfigChange

// ConfigAnswer is the answer to an applied configuration.
type ConfigAnswer = api.ConfigAnswer

// ApplyConfig writes items in order, all or none.
func (s *Store) ApplyConfig(ctx context.Context, a OperatorAction, items []ConfigItem) (Written, error) {
	return s.write(ctx, a, `autopost.apply_config(@workspace, @items, @operator, @reason, @dry_run)`, args{"items": items})
}

// ExportConfig returns the items from which ApplyConfig creates the same workspace.
func (s *Store) ExportConfig(ctx context.Context, workspace string) ([]ConfigItem, error) {
	items, err := call[[]ConfigItem](ctx, s, `select * from autopost.export_config($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("export config ws=%s: %w", workspace, err)
	}
	return items, nil
}

// SettingChange is the change of a setting.
type SettingChange struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// SettingsAnswer is the answer to changed settings.
type SettingsAnswer struct {
	Changes []SettingChange `json:"changes"`
}

// ApplySettings changes settings, all or none. Settings belong to no workspace.
func (s *Store) ApplySettings(ctx context.Context, a OperatorAction, values any) (Written, error) {
	return s.write(ctx, a, `autopost.apply_settings(@values, @operator, @reason, @dry_run)`, args{"values": values})
}

// NoteCluster stores the cluster of a new database and reports whether this one is a restored copy that sends nothing
// until ConfirmRestore.
func (s *Store) NoteCluster(ctx context.Context) (restored bool, err error) {
	answer, err := call[struct{ Restored bool }](ctx, s, `select * from autopost.note_cluster()`)
	if err != nil {
		return false, fmt.Errorf("note the cluster: %w", err)
	}
	return answer.Restored, nil
}

// RestoreAnswer is the answer of ConfirmRestore.
type RestoreAnswer struct {
	Applied bool   `json:"applied"`
	DryRun  bool   `json:"dry_run"`
	Reason  string `json:"reason,omitempty"`
	// Unknown is the number of deliveries whose outcome is unknown now.
	Unknown int `json:"unknown"`
	// More means that the call must be repeated.
	More bool `json:"more"`
}

// ConfirmRestore lets a restored copy send.
func (s *Store) ConfirmRestore(ctx context.Context, a OperatorAction) (RestoreAnswer, error) {
	answer, err := call[RestoreAnswer](ctx, s, `select * from autopost.confirm_restore($1, $2, $3)`, a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("confirm the restore: %w", err)
	}
	return answer, nil
}

// GetWorkspace returns a workspace as JSON, with counts of its channels and its queue.
func (s *Store) GetWorkspace(ctx context.Context, workspace string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_workspace($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("get workspace ws=%s: %w", workspace, err)
	}
	return raw, nil
}

// GetChannel returns the fields and the state of a channel as JSON; nil if it does not exist.
func (s *Store) GetChannel(ctx context.Context, workspace, channel string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_channel($1, $2)`, workspace, channel)
	if err != nil {
		return nil, fmt.Errorf("get channel %s ws=%s: %w", channel, workspace, err)
	}
	return raw, nil
}

// WorkspaceRow is a row of autopost.workspaces.
type WorkspaceRow struct {
	WorkspaceID string    `json:"workspace_id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
}

// DescribeWorkspaces returns the workspaces of every status by id; limit is 1 to 10,000.
func (s *Store) DescribeWorkspaces(ctx context.Context, limit int) ([]WorkspaceRow, error) {
	return read[WorkspaceRow](ctx, s, "describe workspaces", `
		select workspace_id, name, status, created_at from autopost.describe_workspaces($1)`, limit)
}

// RateGroupRow is a row of list_rate_groups.
type RateGroupRow struct {
	Platform  string `json:"platform"`
	RateGroup string `json:"rate_group"`
	// RateRPS is 0 without a limit.
	RateRPS         float64    `json:"rate_rps"`
	Channels        int64      `json:"channels"`
	EnabledChannels int64      `json:"enabled"`
	CooldownUntil   *time.Time `json:"cooldown_until"`
	QuotaUntil      *time.Time `json:"quota_until"`
	BreakerOpenedAt *time.Time `json:"breaker_opened_at"`
	// PlatformRPS is the default limit on this platform; 0 if the platform publishes none.
	PlatformRPS float64 `json:"platform_rps"`
}

// ListRateGroups returns the rate groups of a workspace by platform and name; limit is 1 to 10,000.
func (s *Store) ListRateGroups(ctx context.Context, workspace string, limit int) ([]RateGroupRow, error) {
	return read[RateGroupRow](ctx, s, "list rate groups ws="+workspace, `
		select platform, rate_group, coalesce(rate_rps, 0)::float8, channels, enabled_channels, cooldown_until, quota_until, breaker_opened_at,
			coalesce(platform_rps, 0)::float8
		from autopost.list_rate_groups($1, $2)`, workspace, limit)
}

// QuotaRow is a quota with its present use.
type QuotaRow struct {
	Subject       string `json:"subject"`
	WindowSeconds int    `json:"window_seconds"`
	MaxSends      int    `json:"max_sends"`
	// Counts is "posts" or "calls": the unit of MaxSends and Used.
	Counts string `json:"counts"`
	Used   int    `json:"used"`
	// FreeAt is when the next post may start; nil if it may start now.
	FreeAt *time.Time `json:"free_at"`
}

// ListQuotas returns the quotas of a workspace by subject and window; limit is 1 to 10,000.
func (s *Store) ListQuotas(ctx context.Context, workspace string, limit int) ([]QuotaRow, error) {
	return read[QuotaRow](ctx, s, "list quotas ws="+workspace, `
		select subject, window_seconds, max_sends, counts, used, nullif(free_at, 'infinity') from autopost.list_quotas($1, $2)`, workspace, limit)
}

// BudgetRow is a budget with its spending of this month, in dollars.
type BudgetRow struct {
	AuthRef  string      `json:"auth_ref"`
	MonthUSD json.Number `json:"month_usd"`
	SpentUSD json.Number `json:"spent_usd"`
	// Uses is the spending by use.
	Uses   json.RawMessage `json:"uses"`
	EndsAt time.Time       `json:"ends_at"`
}

// ListBudgets returns the budgets of a workspace by credential; limit is 1 to 10,000.
func (s *Store) ListBudgets(ctx context.Context, workspace string, limit int) ([]BudgetRow, error) {
	return read[BudgetRow](ctx, s, "list budgets ws="+workspace, `
		select auth_ref, month_usd::text, spent_usd::text, uses, ends_at from autopost.list_budgets($1, $2)`, workspace, limit)
}

// SettingRow is a row of autopost.settings.
type SettingRow struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Default json.RawMessage `json:"default_value"`
	// Least and Most are the bounds of a number, else null.
	Least json.RawMessage `json:"least"`
	Most  json.RawMessage `json:"most"`
	// Internal settings are for tests and support.
	Internal bool   `json:"internal"`
	Meaning  string `json:"meaning"`
}

// ListSettings returns the settings of the installation by key.
func (s *Store) ListSettings(ctx context.Context) ([]SettingRow, error) {
	return read[SettingRow](ctx, s, "list settings", `select key, value, default_value, to_jsonb(least), to_jsonb(most), internal, meaning from autopost.list_settings()`)
}

// SendingLease returns the length of a delivery lease.
func (s *Store) SendingLease(ctx context.Context) (time.Duration, error) {
	settings, err := s.ListSettings(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the sending lease: %w", err)
	}
	var seconds int
	for _, row := range settings {
		if row.Key == "sending_lease_seconds" {
			err = json.Unmarshal(row.Value, &seconds)
		}
	}
	return time.Duration(seconds) * time.Second, err
}

// PutWebhook adds or changes a result webhook.
func (s *Store) PutWebhook(ctx context.Context, a OperatorAction, webhook string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_webhook(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": webhook, "fields": fields})
}

// RemoveWebhook removes a result webhook with its queue.
func (s *Store) RemoveWebhook(ctx context.Context, a OperatorAction, webhook string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_webhook(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": webhook})
}

// TestWebhook queues an event of type webhook.test.
func (s *Store) TestWebhook(ctx context.Context, a OperatorAction, webhook string) (Written, error) {
	return s.write(ctx, a, `autopost.test_webhook(@workspace, @id, @operator, @reason)`, args{"id": webhook})
}

// WebhookTest is the answer of TestWebhook.
type WebhookTest struct {
	EventID string `json:"event_id"`
	// Reason is "unknown_webhook" or "disabled" if nothing was queued.
	Reason string `json:"reason"`
}

// WebhookReplay selects events for a replay: from Since until before Until, or by id.
type WebhookReplay struct {
	Since      string   `json:"since,omitempty"`
	Until      string   `json:"until,omitempty"`
	EventIDs   []string `json:"event_ids,omitempty"`
	FailedOnly bool     `json:"failed_only,omitempty"`
}

// WebhookReplayed is the answer to a replay.
type WebhookReplayed struct {
	Applied bool `json:"applied"`
	DryRun  bool `json:"dry_run"`
	// Reason is "unknown_webhook", "disabled" or "nothing_to_replay" if nothing was queued.
	Reason string `json:"reason,omitempty"`
	Queued int    `json:"queued"`
	// NextSince is the Since of the next call; "" if the replay is complete.
	NextSince string `json:"next_since,omitempty"`
	// Unknown are ids that are unknown or too old.
	Unknown []string `json:"unknown"`
}

// ReplayWebhook queues events for a result webhook again, about 5,000 per call.
func (s *Store) ReplayWebhook(ctx context.Context, a OperatorAction, webhook string, filter any) (Written, error) {
	return s.write(ctx, a, `autopost.replay_webhook(@workspace, @id, @filter, @operator, @reason, @dry_run)`, args{"id": webhook, "filter": filter})
}

// AlertRow is a row of list_alerts.
type AlertRow struct {
	AlertID        string     `json:"alert_id"`
	Kind           string     `json:"kind"`
	Subject        string     `json:"subject"`
	Severity       string     `json:"severity"`
	What           string     `json:"what"`
	Remedy         string     `json:"remedy"`
	RaisedAt       time.Time  `json:"raised_at"`
	EndedAt        *time.Time `json:"ended_at"`
	AcknowledgedBy string     `json:"acknowledged_by"`
	LastNotifiedAt *time.Time `json:"last_notified_at"`
}

// ListAlerts returns the alerts of a workspace, open ones first, the worst before others; limit is 1 to 10,000.
func (s *Store) ListAlerts(ctx context.Context, workspace string, limit int) ([]AlertRow, error) {
	return read[AlertRow](ctx, s, "list alerts ws="+workspace, `
		select alert_id::text, kind, subject, severity, what, remedy, raised_at, ended_at, coalesce(acknowledged_by, ''), last_notified_at
		from autopost.list_alerts($1, $2)`, workspace, limit)
}

// AlertTargetRow is an alert target with the result of the last notice.
type AlertTargetRow struct {
	TargetID    string     `json:"target_id"`
	Kind        string     `json:"kind"`
	Address     string     `json:"address"`
	Enabled     bool       `json:"enabled"`
	MinSeverity string     `json:"min_severity"`
	QuietHours  string     `json:"quiet_hours"`
	ToldAt      *time.Time `json:"told_at"`
	Failures    int        `json:"failures"`
	// LastError is "" if the last notice was sent. It says also that an address is not confirmed.
	LastError string `json:"last_error"`
}

// ListAlertTargets returns the targets of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListAlertTargets(ctx context.Context, workspace string, limit int) ([]AlertTargetRow, error) {
	return read[AlertTargetRow](ctx, s, "list alert targets ws="+workspace, `
		select target_id, kind, address, enabled, min_severity, coalesce(quiet_hours, ''), told_at, failures, coalesce(last_error ->> 'message', last_error ->> 'code', case when confirmed_at is null then 'not confirmed: autopost alert target confirm ' || target_id else '' end)
		from autopost.list_alert_targets($1, $2)`, workspace, limit)
}

// PutAlertTarget adds or changes an alert target.
func (s *Store) PutAlertTarget(ctx context.Context, a OperatorAction, target string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_alert_target(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": target, "fields": fields})
}

// RemoveAlertTarget removes an alert target.
func (s *Store) RemoveAlertTarget(ctx context.Context, a OperatorAction, target string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_alert_target(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": target})
}

// ModerationChatRow is a chat whose members decide about posts.
type ModerationChatRow struct {
	ChatID   string   `json:"chat_id"`
	Platform string   `json:"platform"`
	AuthRef  string   `json:"auth_ref"`
	TargetID string   `json:"target_id"`
	Users    []string `json:"users"`
	Enabled  bool     `json:"enabled"`
	// Waiting counts the messages that wait for a press.
	Waiting  int64      `json:"waiting"`
	SentAt   *time.Time `json:"sent_at"`
	Failures int        `json:"failures"`
	// Fault says why nobody can be asked or decide there; "" if the database knows no reason.
	Fault string `json:"fault"`
}

// ListModerationChats returns the moderators' chats of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListModerationChats(ctx context.Context, workspace string, limit int) ([]ModerationChatRow, error) {
	return read[ModerationChatRow](ctx, s, "list moderation chats ws="+workspace, `
		select chat_id, coalesce(platform, ''), auth_ref, target_id, users, enabled, waiting, sent_at, failures, coalesce(fault, '')
		from autopost.list_moderation_chats($1, $2)`, workspace, limit)
}

// PutModerationChat adds or changes a moderators' chat.
func (s *Store) PutModerationChat(ctx context.Context, a OperatorAction, chat string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_moderation_chat(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": chat, "fields": fields})
}

// RemoveModerationChat removes a moderators' chat.
func (s *Store) RemoveModerationChat(ctx context.Context, a OperatorAction, chat string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_moderation_chat(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": chat})
}

// TestAlertTarget makes a daemon send a test message.
func (s *Store) TestAlertTarget(ctx context.Context, a OperatorAction, target string) (Written, error) {
	return s.write(ctx, a, `autopost.test_alert_target(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": target})
}

// ConfirmAlertTarget confirms a mail address by the code that was sent to it.
func (s *Store) ConfirmAlertTarget(ctx context.Context, a OperatorAction, target, code string) (Written, error) {
	return s.write(ctx, a, `autopost.confirm_alert_target(@workspace, @id, @code, @operator, @reason, @dry_run)`, args{"id": target, "code": code})
}

// AcknowledgeAlert stops the reminders of an alert.
func (s *Store) AcknowledgeAlert(ctx context.Context, a OperatorAction, alert string) (Written, error) {
	return s.write(ctx, a, `autopost.acknowledge_alert(@workspace, @id::text::uuid, @operator, @reason, @dry_run)`, args{"id": alert})
}

// HealthSnapshot returns the health of a workspace as a JSON object.
func (s *Store) HealthSnapshot(ctx context.Context, workspace string) (json.RawMessage, error) {
	health, err := call[json.RawMessage](ctx, s, `select * from autopost.health_snapshot($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("health snapshot ws=%s: %w", workspace, err)
	}
	return health, nil
}

// GetSummary returns what every page shows of a workspace as a JSON object.
func (s *Store) GetSummary(ctx context.Context, workspace string) (json.RawMessage, error) {
	summary, err := call[json.RawMessage](ctx, s, `select * from autopost.get_summary($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("summary ws=%s: %w", workspace, err)
	}
	return summary, nil
}

// GetOverview returns what the first page shows of a workspace as a JSON object.
func (s *Store) GetOverview(ctx context.Context, workspace string) (json.RawMessage, error) {
	overview, err := call[json.RawMessage](ctx, s, `select * from autopost.get_overview($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("overview ws=%s: %w", workspace, err)
	}
	return overview, nil
}
