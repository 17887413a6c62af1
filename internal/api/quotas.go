package api

import (
	"context"
	"net/http"

	"autopost/internal/api/rest"
)

type quota struct {
	QuotaID       string  `json:"quota_id" example:"channel:news-ru/3600" doc:"SUBJECT/SECONDS. Escape its slashes in a path."`
	Subject       string  `json:"subject" example:"channel:news-ru" doc:"channel:ID, or group:PLATFORM/GROUP for all its channels together."`
	WindowSeconds int     `json:"window_seconds" example:"3600"`
	MaxSends      int     `json:"max_sends" example:"8"`
	Counts        string  `json:"counts" enum:"posts,calls" example:"posts"`
	Used          int     `json:"used" example:"3" doc:"Posts or calls in the window that ends now."`
	FreeAt        instant `json:"free_at" nullable:"true" doc:"When the next post may start; null if it may start now."`
}

func registerQuotas(d *server) {
	listOf[quota](d, "quota", "quota_id", "quotas", "/quotas", "List quotas with their use")
	rest.Register(d.Server, rest.Operation{
		ID: "put-quota", Method: http.MethodPatch, Path: "/quotas/{id}", Summary: "Limit the posts of a channel or a rate group per window", Answer: put{},
		Change:      changeOf("quota"),
		Example:     map[string]any{"max_sends": 8, "reason": "at most 8 posts per hour"},
		Description: "Creates the quota if it does not exist. It applies from the next post.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutQuota(ctx, a, in.ID, fields)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "lift-quota", Method: http.MethodPost, Path: "/quotas/{id}/lift", Summary: "Delete a quota", Answer: put{}, Example: reasonExample,
		Description: "Deletes the quota. Deliveries that waited for it continue.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.DeleteQuota(ctx, a, in.ID)
		})
	})
}
