package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"autopost/internal/admin/door"
)

// planned is who would get a post.
type planned struct {
	Status   string           `json:"status" enum:"planned" example:"planned"`
	Counts   map[string]any   `json:"counts" doc:"Channels by verdict."`
	FirstAt  instant          `json:"first_at,omitempty" nullable:"true"`
	LastAt   instant          `json:"last_at,omitempty" nullable:"true"`
	Channels []map[string]any `json:"channels" nullable:"false" doc:"The first 1,000: channel_id, platform, verdict (queued, deduped, invalid, skipped, not_routed, disabled), reason, and of queued ones text, meta, send_at and held_by."`
	_        struct{}         `additionalProperties:"true"`
}

type planInput struct {
	At   string `query:"at" format:"date-time" doc:"As if it were this instant; without it now." example:"2026-12-01T10:00:00Z"`
	Body json.RawMessage
}

func registerPlan(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "plan-post", Method: http.MethodPost, Path: "/plan", Summary: "Who would get a post", Answer: planned{}, Body: post{}, Example: postExample,
		Description: "A dry run by the enqueue itself: who would get this post, when, as what text, and who not and why. Nothing is written.",
	}, func(ctx context.Context, in *planInput) (door.Reply, error) {
		post, err := healed(in.Body)
		if err != nil {
			return door.Reply{}, err
		}
		var at any
		if in.At != "" {
			at = in.At
		}
		reply, err := d.Look(ctx, "plan", "There is no plan.", map[string]any{"post": post, "at": at})
		if err != nil {
			return reply, err
		}
		return verdictOf(reply)
	})
}

// decodeExactly reads one JSON value, its numbers as they are written.
func decodeExactly(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}
