package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
)

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
