package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type eventType struct {
	Event      string    `json:"event" example:"shop.offer"`
	TemplateID string    `json:"template_id" example:"offer" doc:"The template of its posts. Its variables are the texts, numbers and booleans of the payload."`
	Enabled    bool      `json:"enabled" doc:"Whether new events become posts."`
	Moderated  bool      `json:"moderated" doc:"A person decides about its posts."`
	MediaPath  *string   `json:"media_path" nullable:"true" example:"$.imageUrl" doc:"The JSON path of a medium's URL in the payload."`
	Tags       []string  `json:"tags" nullable:"false" doc:"They route its posts."`
	UpdatedAt  time.Time `json:"updated_at"`
}

// eventTypeChange is the documented body of a change of an event type.
type eventTypeChange struct {
	TemplateID string   `json:"template_id,omitempty" doc:"The template of its posts."`
	Enabled    *bool    `json:"enabled,omitempty" doc:"false skips new events."`
	Moderated  *bool    `json:"moderated,omitempty" doc:"Whether a person decides about its posts."`
	MediaPath  *string  `json:"media_path,omitempty" doc:"The JSON path of a medium's URL in the payload; null for none."`
	Tags       []string `json:"tags,omitempty" doc:"They route its posts."`
	rest.Reasoned
}

// domainEvent is a fact that another program reports.
type domainEvent struct {
	Event     string         `json:"event" example:"MEDIA.IMAGE.GENERATED"`
	Payload   map[string]any `json:"payload" doc:"The fields of the event."`
	SourceRef string         `json:"source_ref,omitempty" doc:"An id of the event. A repeat is a duplicate."`
}

type eventAnswer struct {
	Status       string  `json:"status" enum:"pending,approved,skipped,failed,duplicate" example:"approved"`
	Reason       string  `json:"reason,omitempty" example:"duplicate"`
	RunID        string  `json:"run_id" format:"uuid"`
	SubmissionID string  `json:"submission_id" format:"uuid" doc:"Of a duplicate the first one."`
	MessageID    *string `json:"message_id,omitempty" format:"uuid" nullable:"true" doc:"The message that it became."`
}

type eventInput struct {
	rest.Once
	EndpointID string `query:"endpoint_id" maxLength:"200" doc:"An enabled endpoint of kind webhook_push; required if the workspace has several."`
	Body       json.RawMessage
}

func registerEventTypes(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-event-types", Method: http.MethodGet, Path: "/event-types", Summary: "List own event types", Answer: rest.Listed[eventType]{},
		Description: "All of them, by name. The three events of Global X are built in and not listed.",
	}, func(ctx context.Context, _ *struct{ rest.Page }) (rest.Reply, error) {
		reply, err := d.Get(ctx, "", d.db.ListEventTypes)
		if err == nil {
			reply.Body = append(append([]byte(`{"items": `), reply.Body...), `, "next_cursor": null}`...)
		}
		return reply, err
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-event-type", Method: http.MethodPatch, Path: "/event-types/{id}", Summary: "Add or change an own event type", Answer: put{}, Body: eventTypeChange{},
		Example:     map[string]any{"template_id": "offer", "media_path": "$.imageUrl", "tags": []string{"offer"}, "reason": "new shop"},
		Description: "Changes only the given fields; null restores a default.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutEventType(ctx, a, in.ID, fields)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "submit-event", Method: http.MethodPost, Path: "/domain-events", Summary: "Report a domain event", Answer: eventAnswer{}, Body: domainEvent{},
		Example: map[string]any{"event": "MEDIA.VIDEO.GENERATED", "payload": map[string]any{"type": "video", "videoUrl": "https://cdn.example.org/1.mp4", "title": "Origin",
			"createdAt": "2026-12-01T10:00:00Z"}},
		Description: "A template makes a post of it, as of an event at /hooks/events.",
	}, func(ctx context.Context, in *eventInput) (rest.Reply, error) {
		reply, err := d.Write(ctx, in.Once, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.SubmitEvent(ctx, a, in.EndpointID, in.Body)
		})
		if err != nil {
			return reply, err
		}
		return reply, invalidOf(reply.Body)
	})
}
