package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type webhook struct {
	WebhookID       string    `json:"webhook_id" example:"crm"`
	URL             string    `json:"url" example:"https://crm.example.com/hooks/results"`
	SigningRef      string    `json:"signing_ref" doc:"The credential that signs, by its name."`
	OldSigningRef   *string   `json:"old_signing_ref" nullable:"true" doc:"Signs too, until old_signing_until."`
	OldSigningUntil instant   `json:"old_signing_until" nullable:"true"`
	EventTypes      []string  `json:"event_types" nullable:"false" example:"[\"delivery.sent\", \"post.*\"]"`
	ChannelIDs      []string  `json:"channel_ids" nullable:"false" doc:"Of what has a channel, only of these; none: of all."`
	Tags            []string  `json:"tags" nullable:"false" doc:"Of what has a channel, only of channels with one of these; none: of all."`
	Enabled         bool      `json:"enabled"`
	RPS             float64   `json:"rps" example:"20" doc:"Calls a second."`
	MaxParallel     int       `json:"max_parallel" example:"4" doc:"Calls at a time."`
	TimeoutSeconds  int       `json:"timeout_seconds" example:"15"`
	EnabledAt       time.Time `json:"enabled_at" doc:"What happened before is told by a replay alone."`
	FailingSince    instant   `json:"failing_since" nullable:"true" doc:"No call has gone well since then."`
	DisabledReason  *string   `json:"disabled_reason" nullable:"true" doc:"gone or failing, where the engine disabled it."`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

func registerWebhooks(d *door.Door) {
	listOf[webhook](d, "webhook", "webhook_id", "webhooks", "/webhooks", "Result webhooks, and how they are")
	door.Register(d, door.Operation{
		ID: "put-webhook", Method: http.MethodPatch, Path: "/webhooks/{id}", Summary: "Make or change a result webhook", Answer: put{},
		Example: map[string]any{"event_types": []string{"delivery.sent", "post.*"}, "reason": "the CRM wants less"},
		Description: "Changes only what the body names; makes the webhook where there is none (url and signing_ref are required then). By another signing_ref " +
			"the previous one signs too for the setting signing_overlap_hours.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_webhook", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}

type webhookDelivery struct {
	ID          string         `json:"id" format:"uuid" doc:"webhook-id."`
	TS          time.Time      `json:"ts" doc:"When it happened."`
	Type        string         `json:"type" example:"delivery.sent"`
	Status      string         `json:"status" enum:"pending,sending,delivered,dead" example:"delivered"`
	Attempt     int            `json:"attempt" example:"1" doc:"Calls since it was last queued."`
	DueAt       instant        `json:"due_at" nullable:"true" doc:"Of one that is pending."`
	HTTPStatus  *int           `json:"http_status" nullable:"true" example:"204" doc:"Of the last answer."`
	Error       *string        `json:"error" nullable:"true" doc:"Of the last call, where it did not go well."`
	CreatedAt   time.Time      `json:"created_at"`
	AttemptedAt instant        `json:"attempted_at" nullable:"true"`
	FinishedAt  instant        `json:"finished_at" nullable:"true"`
	Body        map[string]any `json:"body" doc:"What is sent."`
}

type webhookDeliveriesInput struct {
	door.Page
	IDPath
	Status string `query:"status" enum:"pending,sending,delivered,dead" doc:"Only these."`
}

var webhookDeliveries = door.List{Function: "list_webhook_deliveries", Key: door.ByTime()}

func registerWebhookDeliveries(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-webhook-deliveries", Method: http.MethodGet, Path: "/webhooks/{id}/deliveries", Summary: "What a result webhook was and is to be told",
		Answer: door.Listed[webhookDelivery]{}, Description: "By the time of the event, the newest first, for as long as the setting webhook_retention_days.",
	}, func(ctx context.Context, in *webhookDeliveriesInput) (door.Reply, error) {
		if _, err := d.One(ctx, "list_configuration", "webhook", "This workspace has no such webhook.", map[string]any{"id": in.ID}); err != nil {
			return door.Reply{}, err
		}
		return d.Read(ctx, webhookDeliveries, in.Page, map[string]any{"webhook_id": in.ID, "status": in.Status})
	})
}

type webhookTest struct {
	Applied   bool   `json:"applied"`
	WebhookID string `json:"webhook_id" example:"crm"`
	EventID   string `json:"event_id" format:"uuid"`
}

type webhookTestInput struct {
	door.Act
	IDPath
	Body *door.Reasoned
}

type webhookReplay struct {
	Applied   bool     `json:"applied"`
	DryRun    bool     `json:"dry_run"`
	Queued    int      `json:"queued" example:"17"`
	NextSince instant  `json:"next_since" nullable:"true" doc:"Where to go on; null: that was all."`
	Unknown   []string `json:"unknown" nullable:"false" doc:"Ids that it was not told, or too long ago."`
}

type webhookReplayInput struct {
	door.Act
	door.Dry
	IDPath
	Body struct {
		door.Reasoned
		Since      string   `json:"since,omitempty" format:"date-time" doc:"From this instant on, with its offset."`
		Until      string   `json:"until,omitempty" format:"date-time" doc:"Before this instant; now where it is left out."`
		EventIDs   []string `json:"event_ids,omitempty" maxItems:"1000" doc:"These events, by webhook-id, instead of a time."`
		FailedOnly bool     `json:"failed_only,omitempty" doc:"Only what it did not take."`
	}
}

// what is the filter of replay_webhook.
func (in *webhookReplayInput) what() map[string]any {
	what := map[string]any{"failed_only": in.Body.FailedOnly}
	if in.Body.Since != "" {
		what["since"] = in.Body.Since
	}
	if in.Body.Until != "" {
		what["until"] = in.Body.Until
	}
	if len(in.Body.EventIDs) > 0 {
		what["event_ids"] = in.Body.EventIDs
	}
	return what
}

func registerWebhookActs(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "test-webhook", Method: http.MethodPost, Path: "/webhooks/{id}/test", Summary: "Send a result webhook a test event", Answer: webhookTest{}, Example: reasonExample,
		Description: "It is of type webhook.test, signed as all others, and tried once; its row among the deliveries of the webhook says what came back.",
	}, func(ctx context.Context, in *webhookTestInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "test_webhook", Reason: why(in.Body), Args: map[string]any{"id": in.ID}})
	})
	door.Register(d, door.Operation{
		ID: "replay-webhook", Method: http.MethodPost, Path: "/webhooks/{id}/replay", Summary: "Tell a result webhook again", Answer: webhookReplay{},
		Example: map[string]any{"since": "2026-01-01T00:00:00Z", "reason": "the CRM lost a day"},
		Description: "Under the same ids. By time it is told, too, what it was not told then, as far back as events are kept, about 5,000 events a request: " +
			"go on with since = next_since.",
	}, func(ctx context.Context, in *webhookReplayInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "replay_webhook", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"id": in.ID, "what": in.what()}})
	})
}
