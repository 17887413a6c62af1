package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Fields are those of a row of configuration that change, by their column's name;
// null puts one back to its default.
type Fields map[string]json.RawMessage

// PutAnswer is what became of a row of configuration that was written or taken away.
type PutAnswer struct {
	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason says why nothing was applied: "unchanged", "invalid" with Errors, or what
	// stands in the way of taking a row away.
	Reason string       `json:"reason"`
	Errors []FieldError `json:"errors"`
	// Before and After hold what changes.
	Before Fields `json:"before"`
	After  Fields `json:"after"`
	// Note says what is odd about it; mostly empty.
	Note string `json:"note"`
	// References counts what refers to a channel that was to be removed, by table.
	References map[string]int `json:"references"`
	// Bound says whether the credential is there that the row names, of the kinds that say so.
	Bound *bool `json:"bound"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// put asks one function that writes a row of configuration.
func (s *Store) put(ctx context.Context, what, workspace, sql string, args ...any) (PutAnswer, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, args...)
	if err != nil {
		return PutAnswer{}, fmt.Errorf("%s ws=%s: %w", what, workspace, err)
	}
	answer := PutAnswer{Raw: raw}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return PutAnswer{}, fmt.Errorf("%s ws=%s: decode the answer: %w", what, workspace, err)
	}
	return answer, nil
}

// PutWorkspace adds or changes the workspace that the act names.
func (s *Store) PutWorkspace(ctx context.Context, a Act, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put workspace", a.Workspace, `select * from autopost.put_workspace($1, $2, $3, $4, $5)`,
		a.Workspace, fields, a.Operator, a.Reason, a.DryRun)
}

// SetWorkspaceStatus makes the workspace that the act names active, paused or disabled.
func (s *Store) SetWorkspaceStatus(ctx context.Context, a Act, status string) (PutAnswer, error) {
	return s.put(ctx, "set workspace status", a.Workspace, `select * from autopost.set_workspace_status($1, $2, $3, $4, $5)`,
		a.Workspace, status, a.Operator, a.Reason, a.DryRun)
}

// PutChannel adds or changes a channel.
func (s *Store) PutChannel(ctx context.Context, a Act, channel string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put channel "+channel, a.Workspace, `select * from autopost.put_channel($1, $2, $3, $4, $5, $6)`,
		a.Workspace, channel, fields, a.Operator, a.Reason, a.DryRun)
}

// RemoveChannel takes away a channel that is disabled and that nothing refers to.
func (s *Store) RemoveChannel(ctx context.Context, a Act, channel string) (PutAnswer, error) {
	return s.put(ctx, "remove channel "+channel, a.Workspace, `select * from autopost.remove_channel($1, $2, $3, $4, $5)`,
		a.Workspace, channel, a.Operator, a.Reason, a.DryRun)
}

// PutRateGroup changes the limit that the channels of a rate group share.
func (s *Store) PutRateGroup(ctx context.Context, a Act, platform, group string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put rate group "+group, a.Workspace, `select * from autopost.put_rate_group($1, $2, $3, $4, $5, $6, $7)`,
		a.Workspace, platform, group, fields, a.Operator, a.Reason, a.DryRun)
}

// PutQuota bounds the calls in any window of a subject, "channel:ID" or
// "group:PLATFORM/GROUP"; whole seconds of the window count.
func (s *Store) PutQuota(ctx context.Context, a Act, subject string, window time.Duration, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put quota of "+subject, a.Workspace, `select * from autopost.put_quota($1, $2, $3, $4, $5, $6, $7)`,
		a.Workspace, subject, int(window/time.Second), fields, a.Operator, a.Reason, a.DryRun)
}

// DeleteQuota lifts a quota.
func (s *Store) DeleteQuota(ctx context.Context, a Act, subject string, window time.Duration) (PutAnswer, error) {
	return s.put(ctx, "delete quota of "+subject, a.Workspace, `select * from autopost.delete_quota($1, $2, $3, $4, $5, $6)`,
		a.Workspace, subject, int(window/time.Second), a.Operator, a.Reason, a.DryRun)
}

// PutBudget bounds what may be spent with a credential in a month.
func (s *Store) PutBudget(ctx context.Context, a Act, authRef string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put budget of "+authRef, a.Workspace, `select * from autopost.put_budget($1, $2, $3, $4, $5, $6)`,
		a.Workspace, authRef, fields, a.Operator, a.Reason, a.DryRun)
}

// PutCredentialBinding says where the secret of a credential is kept.
func (s *Store) PutCredentialBinding(ctx context.Context, a Act, authRef string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put credential binding "+authRef, a.Workspace, `select * from autopost.put_credential_binding($1, $2, $3, $4, $5, $6)`,
		a.Workspace, authRef, fields, a.Operator, a.Reason, a.DryRun)
}

// ConfigItem is one thing of a configuration.
type ConfigItem struct {
	// Kind is "workspace", "credential", "group", "template", "channel", "quota", "budget", "source" or "endpoint".
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Fields Fields `json:"fields,omitempty"`
	// Retire puts it out of use instead of writing it.
	Retire bool `json:"retire,omitempty"`
}

// ConfigChange is what changes of one thing of a configuration.
type ConfigChange struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Created bool   `json:"created"`
	Before  Fields `json:"before"`
	After   Fields `json:"after"`
	// Note says what is left to do by hand; mostly empty.
	Note string `json:"note,omitempty"`
}

// ConfigAnswer is what became of a configuration that was applied.
type ConfigAnswer struct {
	Applied bool `json:"applied"`
	// Reason is "unchanged", or "invalid": then Item is the index of what is refused, and Errors say why.
	Reason string         `json:"reason"`
	Item   int            `json:"item"`
	Errors []FieldError   `json:"errors"`
	Items  []ConfigChange `json:"items"`
}

// ApplyConfig writes items in their order, all of them or none.
func (s *Store) ApplyConfig(ctx context.Context, a Act, items []ConfigItem) (ConfigAnswer, error) {
	answer, err := call[ConfigAnswer](ctx, s, `select * from autopost.apply_config($1, $2, $3, $4, $5)`, a.Workspace, items, a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("apply config ws=%s: %w", a.Workspace, err)
	}
	return answer, nil
}

// ExportConfig returns all that ApplyConfig takes to make a workspace again.
func (s *Store) ExportConfig(ctx context.Context, workspace string) ([]ConfigItem, error) {
	items, err := call[[]ConfigItem](ctx, s, `select * from autopost.export_config($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("export config ws=%s: %w", workspace, err)
	}
	return items, nil
}

// SettingChange is what changes of a setting.
type SettingChange struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// ApplySettings changes settings together and returns those that changed, or would. They are nobody's workspace's.
func (s *Store) ApplySettings(ctx context.Context, a Act, values Fields) ([]SettingChange, error) {
	answer, err := call[struct{ Changes []SettingChange }](ctx, s, `select * from autopost.apply_settings($1, $2, $3, $4)`, values, a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return nil, fmt.Errorf("apply settings: %w", err)
	}
	return answer.Changes, nil
}

// GetWorkspace returns a workspace as JSON, with its channels and queue in numbers.
func (s *Store) GetWorkspace(ctx context.Context, workspace string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_workspace($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("get workspace ws=%s: %w", workspace, err)
	}
	return raw, nil
}

// GetChannel returns a channel as JSON, its fields and its state; nil when there is none.
func (s *Store) GetChannel(ctx context.Context, workspace, channel string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_channel($1, $2)`, workspace, channel)
	if err != nil {
		return nil, fmt.Errorf("get channel %s ws=%s: %w", channel, workspace, err)
	}
	return raw, nil
}

// WorkspaceRow is a row of autopost.workspaces.
type WorkspaceRow struct {
	WorkspaceID string
	Name        string
	Status      string
	CreatedAt   time.Time
}

// DescribeWorkspaces returns the workspaces whatever their status, by their id; limit is 1 to 10,000.
func (s *Store) DescribeWorkspaces(ctx context.Context, limit int) ([]WorkspaceRow, error) {
	return read[WorkspaceRow](ctx, s, "describe workspaces", `
		select workspace_id, name, status, created_at from autopost.describe_workspaces($1)`, limit)
}

// RateGroupRow is a row of the read model list_rate_groups.
type RateGroupRow struct {
	Platform  string
	RateGroup string
	// RateRPS is 0 where there is no limit.
	RateRPS         float64
	Channels        int64
	EnabledChannels int64
	CooldownUntil   *time.Time
	QuotaUntil      *time.Time
	BreakerOpenedAt *time.Time
}

// ListRateGroups returns the rate groups of a workspace by platform and name; limit is 1 to 10,000.
func (s *Store) ListRateGroups(ctx context.Context, workspace string, limit int) ([]RateGroupRow, error) {
	return read[RateGroupRow](ctx, s, "list rate groups ws="+workspace, `
		select platform, rate_group, coalesce(rate_rps, 0)::float8, channels, enabled_channels, cooldown_until, quota_until, breaker_opened_at
		from autopost.list_rate_groups($1, $2)`, workspace, limit)
}

// QuotaRow is a quota and how much of it is used now.
type QuotaRow struct {
	Subject       string
	WindowSeconds int
	MaxSends      int
	Used          int
	// FreeAt is when the subject has room again, nil where it has.
	FreeAt *time.Time
}

// ListQuotas returns the quotas of a workspace by subject and window; limit is 1 to 10,000.
func (s *Store) ListQuotas(ctx context.Context, workspace string, limit int) ([]QuotaRow, error) {
	return read[QuotaRow](ctx, s, "list quotas ws="+workspace, `
		select subject, window_seconds, max_sends, used, nullif(free_at, 'infinity') from autopost.list_quotas($1, $2)`, workspace, limit)
}

// BudgetRow is a budget and how much of it is spent this month, in dollars.
type BudgetRow struct {
	AuthRef  string      `json:"auth_ref"`
	MonthUSD json.Number `json:"month_usd"`
	SpentUSD json.Number `json:"spent_usd"`
	// Uses says what the money went for.
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
	Key     string
	Value   json.RawMessage
	Default json.RawMessage
	// Least and Most are the bounds of a number; null for what is none.
	Least   json.RawMessage
	Most    json.RawMessage
	Meaning string
}

// ListSettings returns the values that functions decide by, by their key.
func (s *Store) ListSettings(ctx context.Context) ([]SettingRow, error) {
	return read[SettingRow](ctx, s, "list settings", `select key, value, default_value, to_jsonb(least), to_jsonb(most), meaning from autopost.list_settings()`)
}

// SendingLease is how long a lease of a delivery the database grants.
func (s *Store) SendingLease(ctx context.Context) (time.Duration, error) {
	seconds, err := call[int](ctx, s, `select value from autopost.list_settings() where key = 'sending_lease_seconds'`)
	if err != nil {
		return 0, fmt.Errorf("read the sending lease: %w", err)
	}
	return time.Duration(seconds) * time.Second, nil
}

// PutWebhook adds or changes a result webhook.
func (s *Store) PutWebhook(ctx context.Context, a Act, webhook string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put webhook "+webhook, a.Workspace, `select * from autopost.put_webhook($1, $2, $3, $4, $5, $6)`,
		a.Workspace, webhook, fields, a.Operator, a.Reason, a.DryRun)
}

// RemoveWebhook takes away a result webhook with its queue.
func (s *Store) RemoveWebhook(ctx context.Context, a Act, webhook string) (PutAnswer, error) {
	return s.put(ctx, "remove webhook "+webhook, a.Workspace, `select * from autopost.remove_webhook($1, $2, $3, $4, $5)`,
		a.Workspace, webhook, a.Operator, a.Reason, a.DryRun)
}

// TestWebhook queues an event of type webhook.test; reason says why not: "unknown_webhook" or "disabled".
func (s *Store) TestWebhook(ctx context.Context, a Act, webhook string) (eventID, reason string, err error) {
	answer, err := call[struct {
		EventID string `json:"event_id"`
		Reason  string `json:"reason"`
	}](ctx, s, `select * from autopost.test_webhook($1, $2, $3, $4)`, a.Workspace, webhook, a.Operator, a.Reason)
	if err != nil {
		return "", "", fmt.Errorf("test webhook ws=%s webhook=%s: %w", a.Workspace, webhook, err)
	}
	return answer.EventID, answer.Reason, nil
}

// WebhookReplay is what a result webhook is to be told again: what happened from Since on and before Until, or the events of these ids.
type WebhookReplay struct {
	Since      string   `json:"since,omitempty"`
	Until      string   `json:"until,omitempty"`
	EventIDs   []string `json:"event_ids,omitempty"`
	FailedOnly bool     `json:"failed_only,omitempty"`
}

// WebhookReplayed is what became of a replay.
type WebhookReplayed struct {
	Applied bool `json:"applied"`
	DryRun  bool `json:"dry_run"`
	// Reason says why nothing was queued: "unknown_webhook", "disabled" or "nothing_to_replay".
	Reason string `json:"reason,omitempty"`
	Queued int    `json:"queued"`
	// NextSince is where to go on; "" when that was all.
	NextSince string `json:"next_since,omitempty"`
	// Unknown are ids that the webhook was not told, or too long ago.
	Unknown []string `json:"unknown"`
}

// ReplayWebhook tells a result webhook again, about 5,000 events a call.
func (s *Store) ReplayWebhook(ctx context.Context, a Act, webhook string, what WebhookReplay) (WebhookReplayed, error) {
	answer, err := call[WebhookReplayed](ctx, s, `select * from autopost.replay_webhook($1, $2, $3, $4, $5, $6)`,
		a.Workspace, webhook, what, a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return WebhookReplayed{}, fmt.Errorf("replay webhook ws=%s webhook=%s: %w", a.Workspace, webhook, err)
	}
	return answer, nil
}

// AlertRow is a row of the read model list_alerts.
type AlertRow struct {
	AlertID        string
	Kind           string
	Subject        string
	Severity       string
	What           string
	Remedy         string
	RaisedAt       time.Time
	EndedAt        *time.Time
	AcknowledgedBy string
	LastNotifiedAt *time.Time
}

// ListAlerts returns the alerts of a workspace, the open ones first and the worst of these before the others; limit is 1 to 10,000.
func (s *Store) ListAlerts(ctx context.Context, workspace string, limit int) ([]AlertRow, error) {
	return read[AlertRow](ctx, s, "list alerts ws="+workspace, `
		select alert_id::text, kind, subject, severity, what, remedy, raised_at, ended_at, coalesce(acknowledged_by, ''), last_notified_at
		from autopost.list_alerts($1, $2)`, workspace, limit)
}

// AlertTargetRow is somebody who is told of alerts, and what became of the last try.
type AlertTargetRow struct {
	TargetID    string
	Kind        string
	Address     string
	Enabled     bool
	MinSeverity string
	QuietHours  string
	ToldAt      *time.Time
	Failures    int
	// LastError is "" where the last try went well.
	LastError string
}

// ListAlertTargets returns the targets of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListAlertTargets(ctx context.Context, workspace string, limit int) ([]AlertTargetRow, error) {
	return read[AlertTargetRow](ctx, s, "list alert targets ws="+workspace, `
		select target_id, kind, address, enabled, min_severity, coalesce(quiet_hours, ''), told_at, failures, coalesce(last_error ->> 'message', last_error ->> 'code', '')
		from autopost.list_alert_targets($1, $2)`, workspace, limit)
}

// PutAlertTarget adds or changes somebody who is told of alerts.
func (s *Store) PutAlertTarget(ctx context.Context, a Act, target string, fields Fields) (PutAnswer, error) {
	return s.put(ctx, "put alert target "+target, a.Workspace, `select * from autopost.put_alert_target($1, $2, $3, $4, $5, $6)`,
		a.Workspace, target, fields, a.Operator, a.Reason, a.DryRun)
}

// RemoveAlertTarget takes one away.
func (s *Store) RemoveAlertTarget(ctx context.Context, a Act, target string) (PutAnswer, error) {
	return s.put(ctx, "remove alert target "+target, a.Workspace, `select * from autopost.remove_alert_target($1, $2, $3, $4, $5)`,
		a.Workspace, target, a.Operator, a.Reason, a.DryRun)
}

// TestAlertTarget has a daemon send a test message to one.
func (s *Store) TestAlertTarget(ctx context.Context, a Act, target string) (PutAnswer, error) {
	return s.put(ctx, "test alert target "+target, a.Workspace, `select * from autopost.test_alert_target($1, $2, $3, $4, $5)`,
		a.Workspace, target, a.Operator, a.Reason, a.DryRun)
}

// AcknowledgeAlert says that somebody looks after an alert.
func (s *Store) AcknowledgeAlert(ctx context.Context, a Act, alertID string) (PutAnswer, error) {
	return s.put(ctx, "acknowledge alert "+alertID, a.Workspace, `select * from autopost.acknowledge_alert($1, $2, $3, $4, $5)`,
		a.Workspace, alertID, a.Operator, a.Reason, a.DryRun)
}

// HealthSnapshot tells how a workspace is, as a JSON object.
func (s *Store) HealthSnapshot(ctx context.Context, workspace string) (json.RawMessage, error) {
	health, err := call[json.RawMessage](ctx, s, `select * from autopost.health_snapshot($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("health snapshot ws=%s: %w", workspace, err)
	}
	return health, nil
}
