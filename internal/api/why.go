package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"autopost/internal/api/rest"
)

// whyNow is the present state of something that waits.
type whyNow struct {
	Sentence     string           `json:"sentence" example:"fails: 3 polls failed in a row, the next poll is at 2026-12-01T10:00:00Z" doc:"The state in words."`
	SendAt       instant          `json:"send_at,omitempty" nullable:"true" doc:"The expected time; null if time alone does not end the wait."`
	HeldBy       []map[string]any `json:"held_by" nullable:"false" doc:"The wait reasons: gate, until and lifts, the remedy."`
	Lifts        string           `json:"lifts,omitempty" doc:"The remedy, if it is over."`
	DaemonSeenAt instant          `json:"daemon_seen_at,omitempty" nullable:"true" doc:"The last heartbeat of a daemon."`
}

// whySource is the answer about a source.
type whySource struct {
	Status string         `json:"status" enum:"source" doc:"The kind of the answer."`
	Source map[string]any `json:"source" doc:"The last and the next poll, failures in a row, the last error and the run that polls it now."`
	Now    whyNow         `json:"now" doc:"The state, its wait reasons and their remedies."`
}

// whyWebhook is the answer about a result webhook.
type whyWebhook struct {
	Status  string         `json:"status" enum:"webhook" doc:"The kind of the answer."`
	Webhook map[string]any `json:"webhook" doc:"Whether it is enabled or fails, and its waiting and running calls."`
	Call    map[string]any `json:"call" nullable:"true" doc:"The call for the event: its attempt and its last answer; null without an event."`
	Now     whyNow         `json:"now" doc:"The state, its wait reasons and their remedies."`
}

// whyPost is the answer about the fan-out of a post.
type whyPost struct {
	Status string `json:"status" enum:"fanout,message" doc:"fanout while deliveries are being added, then message."`
	Now    whyNow `json:"now" doc:"The state, its wait reasons and their remedies."`
}

type whyWebhookInput struct {
	IDPath
	EventID string `query:"event_id" format:"uuid" doc:"Only the call for this event, by its webhook-id."`
}

func registerWhy(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "why-source", Method: http.MethodGet, Path: "/sources/{id}/why", Summary: "Explain a source", Answer: whySource{},
		Description: "Why nothing comes from a source: disabled, stopped, failing or being polled; its next poll and its last error.",
	}, func(ctx context.Context, in *IDPath) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such source.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.WhySource(ctx, workspace, in.ID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "why-webhook", Method: http.MethodGet, Path: "/webhooks/{id}/why", Summary: "Explain a result webhook", Answer: whyWebhook{},
		Description: "Why a result webhook makes no calls: disabled, failing, or waiting for its rate; with event_id the call for one event, its last answer and its next try.",
	}, func(ctx context.Context, in *whyWebhookInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such result webhook, or the webhook has no such event.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.WhyWebhook(ctx, workspace, in.ID, in.EventID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "why-post", Method: http.MethodGet, Path: "/posts/{message_id}/why", Summary: "Explain the fan-out of a post", Answer: whyPost{},
		Description: "How many channels of a large post are through, what failed and when the next range is tried.",
	}, func(ctx context.Context, in *messageInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such post.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return fanoutOf(d.db.Why(ctx, workspace, in.MessageID))
		})
	})
}

// fanoutOf returns an explanation that is about a message; nil for other ids.
func fanoutOf(raw json.RawMessage, err error) (json.RawMessage, error) {
	var about struct{ Status string }
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		return nil, fmt.Errorf("decode the explanation: %w", err)
	}
	if about.Status != "fanout" && about.Status != "message" {
		return nil, nil
	}
	return raw, nil
}
