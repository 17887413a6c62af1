package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type alert struct {
	AlertID        string         `json:"alert_id" format:"uuid"`
	Kind           string         `json:"kind" example:"dead"`
	Subject        string         `json:"subject" example:"deliveries" doc:"What it is about; one open alert for each kind and subject."`
	Severity       string         `json:"severity" enum:"warning,error,critical" example:"error"`
	What           string         `json:"what" example:"3 dead deliveries: tg_forbidden in news (3)"`
	Remedy         string         `json:"remedy" doc:"What to do."`
	Amount         float64        `json:"amount" example:"3" doc:"How much of it there is, in the unit of its kind."`
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
	Kinds         []string       `json:"kinds" nullable:"true" doc:"Alerts of these kinds only; null: of all."`
	QuietHours    *string        `json:"quiet_hours" nullable:"true" example:"22:00-07:30"`
	Timezone      string         `json:"timezone" example:"Europe/Moscow"`
	QuietCritical bool           `json:"quiet_critical" doc:"Whether critical ones come in quiet hours too."`
	DigestMinutes int            `json:"digest_minutes" doc:"All but critical ones come together, at most so often."`
	DailyLimit    int            `json:"daily_limit" example:"50" doc:"Messages in any 24 hours."`
	HealthAt      *string        `json:"health_at" nullable:"true" example:"09:00"`
	HealthOnAlert bool           `json:"health_on_alert"`
	HealthNextAt  instant        `json:"health_next_at" nullable:"true"`
	ToldAt        instant        `json:"told_at" nullable:"true"`
	Failures      int            `json:"failures" doc:"In a row."`
	LastError     map[string]any `json:"last_error" nullable:"true"`
	CreatedAt     time.Time      `json:"created_at"`
	UpdatedAt     time.Time      `json:"updated_at"`
}

func registerAlerts(d *door.Door) {
	listOf[alert](d, "alert", "alert_id", "alerts", "/alerts", "Open alerts")
	door.Register(d, door.Operation{
		ID: "acknowledge-alert", Method: http.MethodPost, Path: "/alerts/{id}/acknowledge", Summary: "Say that somebody looks after an alert", Answer: put{}, Example: reasonExample,
		Description: "Nobody is reminded of it, until there is ten times as much of it. It ends by itself; dead deliveries and unknown outcomes that are there now count no more.",
	}, func(ctx context.Context, in *alertActInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "acknowledge_alert", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"id": in.ID}})
	})
}

type alertActInput struct {
	door.Act
	door.Dry
	ID   string `path:"id" format:"uuid"`
	Body *door.Reasoned
}

func registerAlertTargets(d *door.Door) {
	listOf[alertTarget](d, "alert-target", "target_id", "alert-targets", "/alert-targets", "Who is told of alerts")
	door.Register(d, door.Operation{
		ID: "put-alert-target", Method: http.MethodPatch, Path: "/alert-targets/{id}", Summary: "Make or change a target of alerts", Answer: put{},
		Example:     map[string]any{"min_severity": "error", "quiet_hours": "22:00-07:30", "reason": "the people on duty sleep"},
		Description: "Changes only what the body names; makes the target where there is none.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_alert_target", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
	door.Register(d, door.Operation{
		ID: "test-alert-target", Method: http.MethodPost, Path: "/alert-targets/{id}/test", Summary: "Send a test message to a target", Answer: put{}, Example: reasonExample,
		Description: "A daemon sends it within its monitor's interval; what became of it stands in told_at and last_error.",
	}, func(ctx context.Context, in *actInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "test_alert_target", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"id": in.ID}})
	})
}

// health is how a workspace is.
type health struct {
	At             time.Time          `json:"at"`
	Queue          map[string]int64   `json:"queue" doc:"Deliveries that wait, are in flight or need a person, by status."`
	OldestDueAt    instant            `json:"oldest_due_at" nullable:"true"`
	PausedChannels int64              `json:"paused_channels"`
	Failed24h      int64              `json:"failed_24h" doc:"Deliveries that failed or died in the last 24 hours."`
	TopErrors      []topError         `json:"top_errors" nullable:"false" doc:"Of the newest 1,000 failures."`
	Credentials    []credentialHealth `json:"credentials" nullable:"false" doc:"Refused, or expiring."`
	Sources        []sourceHealth     `json:"sources" nullable:"false" doc:"Failing, or stopped."`
	Alerts         map[string]int64   `json:"alerts" doc:"Open ones, by severity."`
	LastPosts      []lastPost         `json:"last_posts" nullable:"false" doc:"The newest five."`
}

type topError struct {
	Code  string `json:"code" example:"tg_forbidden"`
	Count int64  `json:"count"`
}

type credentialHealth struct {
	AuthRef    string  `json:"auth_ref"`
	ValidUntil instant `json:"valid_until" nullable:"true"`
	LostAt     instant `json:"lost_at" nullable:"true"`
}

type sourceHealth struct {
	SourceID string `json:"source_id"`
	Failures *int64 `json:"failures" nullable:"true"`
	Stopped  bool   `json:"stopped"`
}

type lastPost struct {
	MessageID  string           `json:"message_id" format:"uuid"`
	CreatedAt  time.Time        `json:"created_at"`
	Deliveries map[string]int64 `json:"deliveries" doc:"By status."`
}

func registerHealth(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "get-health", Method: http.MethodGet, Path: "/health", Summary: "How the workspace is", Answer: health{},
		Description: "What targets of alerts get as the health snapshot. Exact: it counts all that waits.",
	}, func(ctx context.Context, _ *struct{}) (door.Reply, error) {
		return d.Look(ctx, "health_snapshot", "", nil)
	})
}
