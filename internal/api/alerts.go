package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type alert struct {
	AlertID        string         `json:"alert_id" format:"uuid"`
	Kind           string         `json:"kind" example:"dead"`
	Subject        string         `json:"subject" example:"deliveries" doc:"The object of the alert. One alert is open per kind and subject."`
	Severity       string         `json:"severity" enum:"warning,error,critical" example:"error"`
	What           string         `json:"what" example:"3 dead deliveries: tg_forbidden in news (3)"`
	Remedy         string         `json:"remedy" doc:"How to fix it."`
	Amount         float64        `json:"amount" example:"3" doc:"The extent of the problem, in the unit of its kind."`
	RaisedAt       time.Time      `json:"raised_at"`
	AcknowledgedAt instant        `json:"acknowledged_at" nullable:"true"`
	AcknowledgedBy *string        `json:"acknowledged_by" nullable:"true"`
	LastNotifiedAt instant        `json:"last_notified_at" nullable:"true"`
	Error          map[string]any `json:"error" nullable:"true"`
	Meta           map[string]any `json:"meta"`
}

type alertTarget struct {
	TargetID      string         `json:"target_id" example:"ops"`
	Kind          string         `json:"kind" enum:"telegram,max,email,webhook" example:"telegram"`
	Address       string         `json:"address" example:"-1001234567890"`
	AuthRef       *string        `json:"auth_ref" nullable:"true" example:"bot"`
	Enabled       bool           `json:"enabled"`
	MinSeverity   string         `json:"min_severity" enum:"warning,error,critical" example:"warning"`
	Kinds         []string       `json:"kinds" nullable:"true" doc:"Only alerts of these kinds; null means all."`
	QuietHours    *string        `json:"quiet_hours" nullable:"true" example:"22:00-07:30"`
	Timezone      string         `json:"timezone" example:"Europe/Moscow"`
	QuietCritical bool           `json:"quiet_critical" doc:"Critical alerts are also sent in quiet hours."`
	DigestMinutes int            `json:"digest_minutes" doc:"Non-critical alerts are combined and sent at most this often."`
	DailyLimit    int            `json:"daily_limit" example:"50" doc:"The most messages in any 24 hours."`
	HealthAt      *string        `json:"health_at" nullable:"true" example:"09:00"`
	HealthOnAlert bool           `json:"health_on_alert"`
	HealthNextAt  instant        `json:"health_next_at" nullable:"true"`
	ToldAt        instant        `json:"told_at" nullable:"true"`
	Failures      int            `json:"failures" doc:"Failures in a row."`
	LastError     map[string]any `json:"last_error" nullable:"true"`
	CreatedAt     time.Time      `json:"created_at"`
	UpdatedAt     time.Time      `json:"updated_at"`
	ConfirmedAt   instant        `json:"confirmed_at" nullable:"true" doc:"Null: a mail address that is not confirmed; it gets no alerts."`
}

// codeInput confirms a mail address.
type codeInput struct {
	rest.AuditedWrite
	rest.Dry
	ID   string `path:"id"`
	Body struct {
		rest.Reasoned
		Code string `json:"code" minLength:"1" maxLength:"100" doc:"The code of the mail."`
	}
}

func registerAlerts(d *server) {
	listOf[alert](d, "alert", "alert_id", "alerts", "/alerts", "List open alerts")
	rest.Register(d.Server, rest.Operation{
		ID: "acknowledge-alert", Method: http.MethodPost, Path: "/alerts/{id}/acknowledge", Summary: "Acknowledge an alert", Answer: put{}, Example: reasonExample,
		Description: "Sends no reminder until the amount is ten times as large. The alert ends when the problem ends. Dead deliveries and unknown outcomes that exist now no longer count.",
	}, func(ctx context.Context, in *alertActInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.AcknowledgeAlert(ctx, a, in.ID)
		})
	})
}

type alertActInput struct {
	rest.AuditedWrite
	rest.Dry
	ID   string `path:"id" format:"uuid"`
	Body *rest.Reasoned
}

func registerAlertTargets(d *server) {
	removeOf(d, "alert-target", "/alert-targets", "Remove an alert target", "It gets no alerts from now on.", Store.RemoveAlertTarget)
	listOf[alertTarget](d, "alert-target", "target_id", "alert-targets", "/alert-targets", "List alert targets")
	rest.Register(d.Server, rest.Operation{
		ID: "put-alert-target", Method: http.MethodPatch, Path: "/alert-targets/{id}", Summary: "Create or change an alert target", Answer: put{},
		Change:      changeOf("alert_target"),
		Example:     map[string]any{"min_severity": "error", "quiet_hours": "22:00-07:30", "reason": "fewer messages at night"},
		Description: "Changes only the given fields. Creates the target if it does not exist.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutAlertTarget(ctx, a, in.ID, fields)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "test-alert-target", Method: http.MethodPost, Path: "/alert-targets/{id}/test", Summary: "Send a test message to an alert target", Answer: put{}, Example: reasonExample,
		Description: "A daemon sends it at its next monitor interval. The result is in told_at and last_error. An unconfirmed mail address gets another code.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.TestAlertTarget(ctx, a, in.ID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "confirm-alert-target", Method: http.MethodPost, Path: "/alert-targets/{id}/confirm", Summary: "Confirm the mail address of an alert target", Answer: put{},
		Example:     map[string]any{"code": "0123456789", "reason": "wanted"},
		Description: "A new mail address gets a code, which is valid for a day and for ten tries. It gets alerts after this request.",
	}, func(ctx context.Context, in *codeInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(&in.Body.Reasoned), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ConfirmAlertTarget(ctx, a, in.ID, in.Body.Code)
		})
	})
}
