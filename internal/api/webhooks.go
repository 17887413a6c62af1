package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type webhook struct {
	WebhookID       string    `json:"webhook_id" example:"crm"`
	URL             string    `json:"url" example:"https://crm.example.com/hooks/results"`
	SigningRef      string    `json:"signing_ref" doc:"The name of the credential that signs."`
	OldSigningRef   *string   `json:"old_signing_ref" nullable:"true" doc:"The previous credential. It also signs until old_signing_until."`
	OldSigningUntil instant   `json:"old_signing_until" nullable:"true"`
	EventTypes      []string  `json:"event_types" nullable:"false" example:"[\"delivery.sent\", \"post.*\"]"`
	ChannelIDs      []string  `json:"channel_ids" nullable:"false" doc:"Only events of these channels; empty means all. Other events are not affected."`
	Tags            []string  `json:"tags" nullable:"false" doc:"Only events of channels with one of these tags; empty means all. Other events are not affected."`
	Enabled         bool      `json:"enabled"`
	RPS             float64   `json:"rps" example:"20" doc:"The most calls per second."`
	MaxParallel     int       `json:"max_parallel" example:"4" doc:"The most calls at once."`
	TimeoutSeconds  int       `json:"timeout_seconds" example:"15"`
	EnabledAt       time.Time `json:"enabled_at" doc:"Only a replay sends earlier events."`
	FailingSince    instant   `json:"failing_since" nullable:"true" doc:"No call has succeeded since then."`
	DisabledReason  *string   `json:"disabled_reason" nullable:"true" doc:"gone or failing, if autopost disabled it."`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

func registerWebhooks(d *server) {
	listOf[webhook](d, "webhook", "webhook_id", "webhooks", "/webhooks", "List result webhooks")
	rest.Register(d.Server, rest.Operation{
		ID: "put-webhook", Method: http.MethodPatch, Path: "/webhooks/{id}", Summary: "Create or change a result webhook", Answer: put{},
		Change:  changeOf("webhook"),
		Example: map[string]any{"event_types": []string{"delivery.sent", "post.*"}, "reason": "fewer events"},
		Description: "Changes only the given fields. Creates the webhook if it does not exist; then url and signing_ref are required. After a change of signing_ref " +
			"the previous one also signs for the time of the setting signing_overlap_hours.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutWebhook(ctx, a, in.ID, fields)
		})
	})
}

type webhookDelivery struct {
	ID          string         `json:"id" format:"uuid" doc:"The webhook-id."`
	TS          time.Time      `json:"ts" doc:"The time of the event."`
	Type        string         `json:"type" example:"delivery.sent"`
	Status      string         `json:"status" enum:"pending,sending,delivered,dead" example:"delivered"`
	Attempt     int            `json:"attempt" example:"1" doc:"Calls since the last queueing."`
	DueAt       instant        `json:"due_at" nullable:"true" doc:"Set while it is pending."`
	HTTPStatus  *int           `json:"http_status" nullable:"true" example:"204" doc:"The status of the last answer."`
	Error       *string        `json:"error" nullable:"true" doc:"The error of the last call."`
	CreatedAt   time.Time      `json:"created_at"`
	AttemptedAt instant        `json:"attempted_at" nullable:"true"`
	FinishedAt  instant        `json:"finished_at" nullable:"true"`
	Body        map[string]any `json:"body" doc:"The body of the request."`
}

type webhookDeliveriesInput struct {
	rest.Page
	IDPath
	Status string `query:"status" enum:"pending,sending,delivered,dead" doc:"Only this status."`
}

var webhookDeliveries = rest.List{Function: "list_webhook_deliveries", Key: rest.ByTime()}

func registerWebhookDeliveries(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-webhook-deliveries", Method: http.MethodGet, Path: "/webhooks/{id}/deliveries", Summary: "List the deliveries of a result webhook",
		Answer: rest.Listed[webhookDelivery]{}, Description: "By the time of the event, newest first. The setting webhook_retention_days limits the age.",
	}, func(ctx context.Context, in *webhookDeliveriesInput) (rest.Reply, error) {
		if _, err := d.One(ctx, "This workspace has no such webhook.", rest.Query{Function: "list_configuration", Kind: "webhook", Filter: map[string]any{"id": in.ID}}); err != nil {
			return rest.Reply{}, err
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
	rest.AuditedWrite
	IDPath
	Body *rest.Reasoned
}

type webhookReplay struct {
	Applied   bool     `json:"applied"`
	DryRun    bool     `json:"dry_run"`
	Queued    int      `json:"queued" example:"17"`
	NextSince instant  `json:"next_since" nullable:"true" doc:"The since of the next request; null if the replay is complete."`
	Unknown   []string `json:"unknown" nullable:"false" doc:"Ids that are unknown or too old."`
}

type webhookReplayInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body struct {
		rest.Reasoned
		Since      string   `json:"since,omitempty" format:"date-time" doc:"From this instant, with offset."`
		Until      string   `json:"until,omitempty" format:"date-time" doc:"Before this instant; now by default."`
		EventIDs   []string `json:"event_ids,omitempty" maxItems:"1000" doc:"Only these webhook-ids, instead of a time range."`
		FailedOnly bool     `json:"failed_only,omitempty" doc:"Only events that were not delivered."`
	}
}

// filter returns the filter of replay_webhook.
func (in *webhookReplayInput) filter() map[string]any {
	filter := map[string]any{"failed_only": in.Body.FailedOnly}
	if in.Body.Since != "" {
		filter["since"] = in.Body.Since
	}
	if in.Body.Until != "" {
		filter["until"] = in.Body.Until
	}
	if len(in.Body.EventIDs) > 0 {
		filter["event_ids"] = in.Body.EventIDs
	}
	return filter
}

func registerWebhookActs(d *server) {
	removeOf(d, "webhook", "/webhooks", "Remove a result webhook", "Its deliveries are removed too. Events that it did not get are not sent.", Store.RemoveWebhook)
	rest.Register(d.Server, rest.Operation{
		ID: "test-webhook", Method: http.MethodPost, Path: "/webhooks/{id}/test", Summary: "Send a test event to a result webhook", Answer: webhookTest{}, Example: reasonExample,
		Description: "The event has the type webhook.test, is signed like all others, and is tried once. The deliveries of the webhook show the answer.",
	}, func(ctx context.Context, in *webhookTestInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.TestWebhook(ctx, a, in.ID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "replay-webhook", Method: http.MethodPost, Path: "/webhooks/{id}/replay", Summary: "Replay events to a result webhook", Answer: webhookReplay{},
		Example: map[string]any{"since": "2026-01-01T00:00:00Z", "reason": "the receiver lost a day"},
		Description: "Events keep their ids. A time range also selects events that were never sent, as far back as events exist. A request queues about 5,000 events: " +
			"continue with since = next_since.",
	}, func(ctx context.Context, in *webhookReplayInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ReplayWebhook(ctx, a, in.ID, in.filter())
		})
	})
}
