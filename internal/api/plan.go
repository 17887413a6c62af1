package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"autopost/internal/api/rest"
)

// planned is the plan of a post.
type planned struct {
	Status   string           `json:"status" enum:"planned" example:"planned"`
	Counts   map[string]any   `json:"counts" doc:"Channels by verdict."`
	FirstAt  instant          `json:"first_at,omitempty" nullable:"true"`
	LastAt   instant          `json:"last_at,omitempty" nullable:"true"`
	Channels []map[string]any `json:"channels" nullable:"false" doc:"The first 1,000 channels: channel_id, platform, verdict (queued, deduped, invalid, skipped, not_routed, disabled) and reason; if queued also text, meta, send_at and held_by."`
	_        struct{}         `additionalProperties:"true"`
}

type planInput struct {
	At   string `query:"at" format:"date-time" doc:"Plan for this instant; now by default." example:"2026-12-01T10:00:00Z"`
	Body json.RawMessage
}

func registerPlan(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "plan-post", Method: http.MethodPost, Path: "/plan", Summary: "Plan a post", Answer: planned{}, Body: post{}, Example: postExample,
		Description: "A dry run of the enqueue: which channels would get this post, when and with what text, and which would not and why. Writes nothing.",
	}, func(ctx context.Context, in *planInput) (rest.Reply, error) {
		post, err := withoutSurrogates(in.Body)
		if err != nil {
			return rest.Reply{}, err
		}
		reply, err := d.Get(ctx, "The plan does not exist.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.Plan(ctx, workspace, post, in.At)
		})
		if err != nil {
			return reply, err
		}
		return verdictOf(reply)
	})
}

// decodeExactly reads one JSON value without rounding its numbers.
func decodeExactly(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}
