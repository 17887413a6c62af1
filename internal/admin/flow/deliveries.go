package flow

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type deliveryRow struct {
	DeliveryID        string         `json:"delivery_id" format:"uuid"`
	MessageID         string         `json:"message_id" format:"uuid"`
	ChannelID         string         `json:"channel_id" example:"news-ru"`
	Platform          string         `json:"platform" example:"telegram"`
	TargetID          string         `json:"target_id" example:"@news"`
	Status            string         `json:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" example:"sent"`
	Attempt           int            `json:"attempt" example:"1"`
	DueAt             instant        `json:"due_at" nullable:"true" doc:"null where time alone does not bring it."`
	ScheduledFor      instant        `json:"scheduled_for" nullable:"true"`
	NextRetryAt       instant        `json:"next_retry_at" nullable:"true" doc:"null also for one that waits for a person."`
	ProviderMessageID *string        `json:"provider_message_id" nullable:"true"`
	SentAt            instant        `json:"sent_at" nullable:"true"`
	LastError         *deliveryError `json:"last_error"`
	RenderedText      string         `json:"rendered_text" example:"Hello"`
	RenderMeta        map[string]any `json:"render_meta"`
	UnknownOutcomes   int            `json:"unknown_outcomes"`
	TraceID           *string        `json:"trace_id" format:"uuid" nullable:"true"`
	IngestRunID       *string        `json:"ingest_run_id" format:"uuid" nullable:"true"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
	FinishedAt        instant        `json:"finished_at" nullable:"true"`
}

// explained is a delivery with its whole history.
type explained struct {
	Delivery map[string]any   `json:"delivery" doc:"The row, its text and its attempts."`
	Message  map[string]any   `json:"message"`
	Source   map[string]any   `json:"source" doc:"The run, the endpoint and the source that it came by."`
	Acts     []map[string]any `json:"acts" nullable:"false" doc:"What was and is to be done to it since it was sent."`
	Chain    []map[string]any `json:"chain" nullable:"false" doc:"What happened to it, in words."`
	Now      map[string]any   `json:"now" doc:"What holds it now, when it would go, and what lifts the hold."`
	Events   []historyEvent   `json:"events" nullable:"false" doc:"Its first 1,000 events as they were written, oldest first."`
}

type historyEvent struct {
	ID      string         `json:"id" format:"uuid"`
	TS      time.Time      `json:"ts"`
	Action  string         `json:"action" example:"send_attempt"`
	Result  string         `json:"result" enum:"ok,error" example:"ok"`
	Attempt int            `json:"attempt" example:"1"`
	Error   map[string]any `json:"error" nullable:"true"`
	Meta    map[string]any `json:"meta"`
}

// shown is how a channel sees a post.
type shown struct {
	DeliveryID string         `json:"delivery_id" format:"uuid"`
	ChannelID  string         `json:"channel_id" example:"news-ru"`
	Platform   string         `json:"platform" example:"telegram"`
	TargetID   string         `json:"target_id" example:"@news"`
	Text       string         `json:"text" example:"Hello" doc:"As it is sent, in the platform's own markup."`
	Meta       map[string]any `json:"meta" doc:"Media, buttons, steps and what was cut."`
}

type deliveriesInput struct {
	door.Page
	Window
	Status    string `query:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" doc:"In this status."`
	ChannelID string `query:"channel_id" doc:"For this channel."`
	MessageID string `query:"message_id" format:"uuid" doc:"Of this message."`
	ErrorCode string `query:"error_code" doc:"Whose last error has this code, of those that wait again or failed." example:"http_403"`
}

// DeliveryPath names a delivery.
type DeliveryPath struct {
	DeliveryID string `path:"delivery_id" format:"uuid"`
}

var deliveries = door.List{Function: "list_deliveries", Key: door.ByID("delivery_id")}

const noDelivery = "This workspace has no such delivery."

func registerDeliveries(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-deliveries", Method: http.MethodGet, Path: "/deliveries", Summary: "Deliveries, the newest first", Answer: door.Listed[deliveryRow]{},
		Description: "A row for each post and channel; by status, channel, message, time and code of the error.",
	}, func(ctx context.Context, in *deliveriesInput) (door.Reply, error) {
		return d.Read(ctx, deliveries, in.Page, map[string]any{"status": in.Status, "channel_id": in.ChannelID, "message_id": in.MessageID,
			"error_code": in.ErrorCode, "since": in.Since, "until": in.Until})
	})
	door.Register(d, door.Operation{
		ID: "get-delivery", Method: http.MethodGet, Path: "/deliveries/{delivery_id}", Summary: "A delivery with its whole history", Answer: explained{},
		Description: "Where it came from, what happened to it, what holds it now, and each of its events.",
	}, func(ctx context.Context, in *DeliveryPath) (door.Reply, error) {
		return d.Look(ctx, "get_delivery", noDelivery, map[string]any{"delivery_id": in.DeliveryID})
	})
	door.Register(d, door.Operation{
		ID: "preview-delivery", Method: http.MethodGet, Path: "/deliveries/{delivery_id}/preview", Summary: "A post as its channel sees it", Answer: shown{},
		Description: "The text as it was rendered for this channel and is sent.",
	}, func(ctx context.Context, in *DeliveryPath) (door.Reply, error) {
		return previewDelivery(ctx, d, in.DeliveryID)
	})
}

func previewDelivery(ctx context.Context, d *door.Door, id string) (door.Reply, error) {
	reply, err := d.One(ctx, deliveries.Function, "", noDelivery, map[string]any{"delivery_id": id})
	if err != nil {
		return reply, err
	}
	var row deliveryRow
	if err := json.Unmarshal(reply.Body, &row); err != nil {
		return reply, err
	}
	reply.Body, err = json.Marshal(shown{
		DeliveryID: row.DeliveryID, ChannelID: row.ChannelID, Platform: row.Platform, TargetID: row.TargetID, Text: row.RenderedText, Meta: row.RenderMeta,
	})
	return reply, err
}
