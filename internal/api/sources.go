package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type source struct {
	SourceID   string         `json:"source_id" example:"blog"`
	Kind       string         `json:"kind" example:"rss"`
	Config     map[string]any `json:"config_json" doc:"The configuration with masked secrets."`
	Enabled    bool           `json:"enabled"`
	PolledAt   instant        `json:"polled_at" nullable:"true"`
	NextPollAt instant        `json:"next_poll_at" nullable:"true"`
	Failures   int            `json:"failures" doc:"Failures in a row."`
	LastError  map[string]any `json:"last_error" nullable:"true"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
}

func registerSources(d *server) {
	listOf[source](d, "source", "source_id", "sources", "/sources", "List sources")
	rest.Register(d.Server, rest.Operation{
		ID: "put-source", Method: http.MethodPatch, Path: "/sources/{id}", Summary: "Create or change a source", Answer: put{},
		Change:      changeOf("source"),
		Example:     map[string]any{"kind": "rss", "config_json": map[string]any{"url": "https://example.org/feed"}, "reason": "a new blog"},
		Description: "Changes only the given fields. Creates the source if it does not exist.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutSource(ctx, a, in.ID, fields)
		})
	})
}
