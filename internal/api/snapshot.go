package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// health is the health snapshot of a workspace.
type health struct {
	At             time.Time          `json:"at"`
	Queue          map[string]int64   `json:"queue" doc:"Deliveries that wait, are in flight or need a person, by status."`
	OldestDueAt    instant            `json:"oldest_due_at" nullable:"true"`
	PausedChannels int64              `json:"paused_channels"`
	Submissions    map[string]int     `json:"submissions" doc:"Posts that are not enqueued, by status, each up to 10,000."`
	Failed24h      int64              `json:"failed_24h" doc:"Deliveries that failed or died in the last 24 hours."`
	TopErrors      []topError         `json:"top_errors" nullable:"false" doc:"The most frequent errors of the newest 1,000 failures."`
	Credentials    []credentialHealth `json:"credentials" nullable:"false" doc:"Credentials that were refused or will expire."`
	Sources        []sourceHealth     `json:"sources" nullable:"false" doc:"Sources that fail or were stopped."`
	Alerts         map[string]int64   `json:"alerts" doc:"Open alerts by severity."`
	LastPosts      []lastPost         `json:"last_posts" nullable:"false" doc:"The newest five posts."`
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
	Deliveries map[string]int64 `json:"deliveries" doc:"Deliveries by status."`
}

func registerHealth(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "get-health", Method: http.MethodGet, Path: "/health", Summary: "Get the health of the workspace", Answer: health{},
		Description: "The health snapshot that alert targets get. The counts are exact.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", d.db.HealthSnapshot)
	})
}

// summary is what every page shows of a workspace.
type summary struct {
	Pending            int          `json:"pending" doc:"Posts that wait for a decision; 1,000 means that many or more." example:"3"`
	Alerts             int          `json:"alerts" doc:"Open alerts; 1,000 means that many or more." example:"1"`
	RefusedCredentials []briefAlert `json:"refused_credentials" nullable:"false" doc:"Alerts about credentials that a platform refuses, the first 20."`
	XPosts             bool         `json:"x_posts" doc:"true if Global X posts are configured."`
	Bot                bool         `json:"bot" doc:"true if the bot has rules."`
}

// briefAlert is an open alert in a summary.
type briefAlert struct {
	AlertID        string         `json:"alert_id" format:"uuid"`
	Kind           string         `json:"kind" example:"dead"`
	Subject        string         `json:"subject" example:"deliveries"`
	Severity       string         `json:"severity" enum:"warning,error,critical" example:"error"`
	What           string         `json:"what" example:"3 dead deliveries: tg_forbidden in news (3)"`
	Remedy         string         `json:"remedy" doc:"How to fix it."`
	Amount         float64        `json:"amount" example:"3" doc:"The extent of the problem, in the unit of its kind."`
	Meta           map[string]any `json:"meta"`
	RaisedAt       time.Time      `json:"raised_at"`
	AcknowledgedAt instant        `json:"acknowledged_at,omitempty" nullable:"true"`
}

// overview is what the first page shows of a workspace.
type overview struct {
	Status string       `json:"status" enum:"active,paused,disabled" example:"active" doc:"The status of the workspace."`
	Health health       `json:"health"`
	Alerts []briefAlert `json:"alerts" nullable:"false" doc:"The worst 20 open alerts."`
	Flow   []flow       `json:"flow" nullable:"false" doc:"Platforms with calls in the last hour."`
}

// flow counts the calls of a platform.
type flow struct {
	Platform string `json:"platform" example:"telegram"`
	Sent     []int  `json:"sent" nullable:"false" doc:"Posts sent per minute of the last hour, the oldest minute first. The newest 20,000 events are counted."`
	Failed   []int  `json:"failed" nullable:"false" doc:"Calls that failed, likewise."`
}

func registerSummary(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "get-summary", Method: http.MethodGet, Path: "/summary", Summary: "Get what waits for a person", Answer: summary{},
		Description: "The numbers that every page shows.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", d.db.GetSummary)
	})
}

func registerOverview(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "get-overview", Method: http.MethodGet, Path: "/overview", Summary: "Get the overview of the workspace", Answer: overview{},
		Description: "The health snapshot with the worst alerts and the calls of the last hour by minute and platform.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", d.db.GetOverview)
	})
}
