package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type eventRow struct {
	ID         string         `json:"id" format:"uuid"`
	TS         time.Time      `json:"ts"`
	Action     string         `json:"action" example:"sent"`
	Result     string         `json:"result" enum:"ok,error" example:"ok"`
	Attempt    int            `json:"attempt" example:"1"`
	DeliveryID *string        `json:"delivery_id" format:"uuid" nullable:"true"`
	MessageID  *string        `json:"message_id" format:"uuid" nullable:"true"`
	ChannelID  *string        `json:"channel_id" nullable:"true" example:"news-ru"`
	Error      map[string]any `json:"error" nullable:"true"`
	Meta       map[string]any `json:"meta"`
	PayloadRef *string        `json:"payload_ref" nullable:"true" doc:"The raw payload: POST /events/{id}/raw makes a link to it."`
}

type eventsInput struct {
	rest.Page
	Window
	DeliveryID string `query:"delivery_id" format:"uuid" doc:"Only this delivery."`
	MessageID  string `query:"message_id" format:"uuid" doc:"Only this message and its deliveries."`
	ChannelID  string `query:"channel_id" doc:"Only this channel. Requires since."`
	Action     string `query:"action" doc:"Only this action. Requires since." example:"sent"`
	Result     string `query:"result" enum:"ok,error" doc:"Only this result."`
}

var events = rest.List{Function: "list_events", Key: rest.ByTime()}

func registerEvents(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-events", Method: http.MethodGet, Path: "/events", Summary: "List events, newest first", Answer: rest.Listed[eventRow]{},
		Description: "The history of posts. Filters: delivery, message, result, time, channel and action. A channel or an action requires since.",
	}, func(ctx context.Context, in *eventsInput) (rest.Reply, error) {
		if in.Since == "" && in.DeliveryID == "" && in.MessageID == "" && (in.ChannelID != "" || in.Action != "") {
			return rest.Reply{}, rest.Wrong("query.since", "must be set with channel_id or action", "send the start of the time range")
		}
		return d.Read(ctx, events, in.Page, map[string]any{"delivery_id": in.DeliveryID, "message_id": in.MessageID, "channel_id": in.ChannelID,
			"action": in.Action, "result": in.Result, "since": in.Since, "until": in.Until})
	})
}

// queueRow counts the deliveries in a status that needs work or an operator.
type queueRow struct {
	Status      string  `json:"status" example:"queued"`
	Deliveries  int64   `json:"deliveries" example:"12"`
	OldestDueAt instant `json:"oldest_due_at" nullable:"true" doc:"null if all of them wait for an operator."`
}

type queue struct {
	Items []queueRow `json:"items" nullable:"false"`
}

// forecast predicts when the queue is empty.
type forecast struct {
	Status   string           `json:"status" enum:"forecast" example:"forecast"`
	AsOf     time.Time        `json:"as_of"`
	Waiting  int              `json:"waiting" example:"120"`
	Held     int              `json:"held" doc:"Deliveries that wait for an operator." example:"0"`
	DrainsAt instant          `json:"drains_at" nullable:"true" doc:"When the last delivery that needs no operator is sent."`
	Groups   []map[string]any `json:"groups" nullable:"false" doc:"Per rate group: platform, rate_group, channels, waiting, oldest_due_at (when its oldest delivery was or is due), drains_at and limited_by."`
	Channels []map[string]any `json:"channels" nullable:"false" doc:"The first 1,000 channels with a queue: channel_id, platform, rate_group, waiting, held, starts_at, drains_at (null if an operator is needed) and limited_by, the slowest limit."`
	More     int              `json:"more" doc:"How many channels are not listed." example:"0"`
}

func registerQueue(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "get-forecast", Method: http.MethodGet, Path: "/queue/forecast", Summary: "Forecast the queue", Answer: forecast{},
		Description: "Predicts per channel when the queue is empty, from rates, quotas and posting windows. It assumes no new posts and no failures.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "The forecast does not exist.", d.db.Forecast)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-queue", Method: http.MethodGet, Path: "/queue", Summary: "Get the queue", Answer: queue{},
		Description: "Counts by status the deliveries that wait, are in flight or need an operator, with the due time of the oldest. The counts are exact.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		rows, err := d.Rows(ctx, rest.Query{Function: "queue_snapshot"})
		if err != nil {
			return rest.Reply{}, err
		}
		body, err := json.Marshal(map[string]any{"items": rows})
		return rest.Reply{Body: body}, err
	})
}
