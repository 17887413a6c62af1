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
