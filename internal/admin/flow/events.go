package flow

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/admin/door"
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
}

type eventsInput struct {
	door.Page
	Window
	DeliveryID string `query:"delivery_id" format:"uuid" doc:"Of this delivery."`
	MessageID  string `query:"message_id" format:"uuid" doc:"Of this message and its deliveries."`
	ChannelID  string `query:"channel_id" doc:"Of this channel; needs since."`
	Action     string `query:"action" doc:"What happened; needs since." example:"sent"`
}

var events = door.List{Function: "list_events", Key: door.ByTime()}

func registerEvents(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-events", Method: http.MethodGet, Path: "/events", Summary: "What happened, the newest first", Answer: door.Listed[eventRow]{},
		Description: "The trail of posts. By delivery or message, or by time; a channel or an action is looked for from since on.",
	}, func(ctx context.Context, in *eventsInput) (door.Reply, error) {
		if in.Since == "" && in.DeliveryID == "" && in.MessageID == "" && (in.ChannelID != "" || in.Action != "") {
			return door.Reply{}, door.Wrong("query.since", "is missing", "say from when on to look: events are kept by time")
		}
		return d.Read(ctx, events, in.Page, map[string]any{"delivery_id": in.DeliveryID, "message_id": in.MessageID, "channel_id": in.ChannelID,
			"action": in.Action, "since": in.Since, "until": in.Until})
	})
}

// queueRow is a status that needs work or a person.
type queueRow struct {
	Status      string  `json:"status" example:"queued"`
	Deliveries  int64   `json:"deliveries" example:"12"`
	OldestDueAt instant `json:"oldest_due_at" nullable:"true" doc:"null when all of them wait for a person."`
}

type queue struct {
	Items []queueRow `json:"items" nullable:"false"`
}

// forecast is when the queue will have gone.
type forecast struct {
	Status   string           `json:"status" enum:"forecast" example:"forecast"`
	AsOf     time.Time        `json:"as_of"`
	Waiting  int              `json:"waiting" example:"120"`
	Held     int              `json:"held" doc:"Those that wait for a person." example:"0"`
	DrainsAt instant          `json:"drains_at" nullable:"true" doc:"When the last goes that goes by itself."`
	Groups   []map[string]any `json:"groups" nullable:"false" doc:"platform, rate_group, channels, waiting, drains_at and limited_by of each rate group."`
	Channels []map[string]any `json:"channels" nullable:"false" doc:"The first 1,000 with a queue: channel_id, platform, rate_group, waiting, held, starts_at, drains_at (null where time alone does not do it) and limited_by, what is the slowest on its way."`
	More     int              `json:"more" doc:"Channels that are not listed." example:"0"`
}

func registerQueue(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "get-forecast", Method: http.MethodGet, Path: "/queue/forecast", Summary: "When what waits will have gone", Answer: forecast{},
		Description: "Channel by channel, given rates, quotas and posting windows, if nothing new comes and nothing fails.",
	}, func(ctx context.Context, _ *struct{}) (door.Reply, error) {
		return d.Look(ctx, "forecast", "There is no forecast.", map[string]any{})
	})
	door.Register(d, door.Operation{
		ID: "get-queue", Method: http.MethodGet, Path: "/queue", Summary: "What waits now", Answer: queue{},
		Description: "How many deliveries wait, are in flight or need a person, by status, and since when the oldest is due. Exact.",
	}, func(ctx context.Context, _ *struct{}) (door.Reply, error) {
		rows, err := d.Rows(ctx, "queue_snapshot", "", nil, 1)
		if err != nil {
			return door.Reply{}, err
		}
		body, err := json.Marshal(map[string]any{"items": rows})
		return door.Reply{Body: body}, err
	})
}
