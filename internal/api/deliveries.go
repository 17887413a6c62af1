package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type deliveryRow struct {
	DeliveryID        string         `json:"delivery_id" format:"uuid"`
	MessageID         string         `json:"message_id" format:"uuid"`
	ChannelID         string         `json:"channel_id" example:"news-ru"`
	Platform          string         `json:"platform" example:"telegram"`
	TargetID          string         `json:"target_id" example:"@news"`
	Status            string         `json:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" example:"sent"`
	Attempt           int            `json:"attempt" example:"1"`
	DueAt             instant        `json:"due_at" nullable:"true" doc:"null if it waits for more than a time."`
	ScheduledFor      instant        `json:"scheduled_for" nullable:"true"`
	NextRetryAt       instant        `json:"next_retry_at" nullable:"true" doc:"null also if it waits for an operator."`
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

// explained is a delivery with its history.
type explained struct {
	Delivery map[string]any   `json:"delivery" doc:"The row, the text and the attempts."`
	Message  map[string]any   `json:"message"`
	Source   map[string]any   `json:"source" doc:"The run, the endpoint and the source of the post."`
	Acts     []map[string]any `json:"acts" nullable:"false" doc:"The changes since it was sent."`
	Chain    []map[string]any `json:"chain" nullable:"false" doc:"The history in words."`
	Now      map[string]any   `json:"now" doc:"The wait reasons, the expected time, and how to end the wait."`
	Events   []historyEvent   `json:"events" nullable:"false" doc:"The first 1,000 events, oldest first."`
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

// shown is a post as its channel shows it.
type shown struct {
	DeliveryID string         `json:"delivery_id" format:"uuid"`
	ChannelID  string         `json:"channel_id" example:"news-ru"`
	Platform   string         `json:"platform" example:"telegram"`
	TargetID   string         `json:"target_id" example:"@news"`
	Text       string         `json:"text" example:"Hello" doc:"The text in the markup of the platform."`
	Meta       map[string]any `json:"meta" doc:"Media, buttons, steps and omitted parts."`
}

type deliveriesInput struct {
	rest.Page
	Window
	Status    string `query:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" doc:"Only this status."`
	ChannelID string `query:"channel_id" doc:"Only this channel."`
	MessageID string `query:"message_id" format:"uuid" doc:"Only this message."`
	ErrorCode string `query:"error_code" doc:"Only failed or retried deliveries whose last error has this code." example:"http_403"`
}

// DeliveryPath is the delivery in a path.
type DeliveryPath struct {
	DeliveryID string `path:"delivery_id" format:"uuid"`
}

var deliveries = rest.List{Function: "list_deliveries", Key: rest.ByID("delivery_id")}

const noDelivery = "This workspace has no such delivery."

func registerDeliveries(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-deliveries", Method: http.MethodGet, Path: "/deliveries", Summary: "List deliveries, newest first", Answer: rest.Listed[deliveryRow]{},
		Description: "One row per post and channel. Filters: status, channel, message, time and error code.",
	}, func(ctx context.Context, in *deliveriesInput) (rest.Reply, error) {
		return d.Read(ctx, deliveries, in.Page, map[string]any{"status": in.Status, "channel_id": in.ChannelID, "message_id": in.MessageID,
			"error_code": in.ErrorCode, "since": in.Since, "until": in.Until})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-delivery", Method: http.MethodGet, Path: "/deliveries/{delivery_id}", Summary: "Explain a delivery", Answer: explained{},
		Description: "The origin of a delivery, its history, its wait reasons and its events.",
	}, func(ctx context.Context, in *DeliveryPath) (rest.Reply, error) {
		return d.Get(ctx, noDelivery, func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.GetDelivery(ctx, workspace, in.DeliveryID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "preview-delivery", Method: http.MethodGet, Path: "/deliveries/{delivery_id}/preview", Summary: "Preview a delivery", Answer: shown{},
		Description: "The text that is rendered for this channel.",
	}, func(ctx context.Context, in *DeliveryPath) (rest.Reply, error) {
		return previewDelivery(ctx, d, in.DeliveryID)
	})
}

func previewDelivery(ctx context.Context, d *server, id string) (rest.Reply, error) {
	reply, err := d.One(ctx, noDelivery, rest.Query{Function: deliveries.Function, Filter: map[string]any{"delivery_id": id}})
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
