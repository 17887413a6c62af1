package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// Target is the new time of deliveries: one of its fields.
type Target struct {
	ScheduledFor string `json:"scheduled_for,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00" doc:"The new time, with offset."`
	Slot         string `json:"slot,omitempty" enum:"next_free" doc:"next_free: the next free slot of each channel."`
	ShiftSeconds int    `json:"shift_seconds,omitempty" example:"7200" doc:"Seconds later than planned; negative: earlier."`
}

// move returns the target as a Move. Exactly one field must be set.
func (t Target) move() (Move, error) {
	m := Move{At: t.ScheduledFor, NextFree: t.Slot != "", ShiftSeconds: t.ShiftSeconds}
	given := 0
	for _, set := range []bool{m.At != "", m.NextFree, m.ShiftSeconds != 0} {
		if set {
			given++
		}
	}
	if given != 1 {
		return m, rest.Wrong("body", "must have one of scheduled_for, slot and shift_seconds", `send {"scheduled_for": "2026-12-01T10:00:00+03:00"}, {"slot": "next_free"} or {"shift_seconds": 7200}`)
	}
	return m, nil
}

// Rescheduling is the body of a move.
type Rescheduling struct {
	Target
	rest.Reasoned
}

type deliveryMoveInput struct {
	rest.AuditedWrite
	rest.Dry
	DeliveryPath
	Body Rescheduling
}

type postMoveInput struct {
	rest.AuditedWrite
	rest.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"The message_id in the answer to an enqueue."`
	Body      Rescheduling
}

type deliveriesMoveInput struct {
	rest.AuditedWrite
	rest.Dry
	Body struct {
		DeliveryIDs []string `json:"delivery_ids" minItems:"1" maxItems:"1000" nullable:"false" format:"uuid" doc:"The ids of the deliveries."`
		Rescheduling
	}
}

// moved is the answer to a move.
type moved struct {
	Applied bool         `json:"applied" doc:"true if a delivery was moved, or would be in a dry run."`
	DryRun  bool         `json:"dry_run,omitempty"`
	Moved   int          `json:"moved" example:"1" doc:"The number of moved deliveries."`
	Refused int          `json:"refused" doc:"The number of deliveries that stay."`
	More    bool         `json:"more,omitempty" doc:"true if the post has more deliveries: use their ids."`
	Results []movedOfOne `json:"results" nullable:"false" doc:"One row per delivery."`
	_       struct{}     `additionalProperties:"true"`
}

type movedOfOne struct {
	DeliveryID   string   `json:"delivery_id" format:"uuid"`
	ChannelID    string   `json:"channel_id,omitempty" example:"news-ru"`
	Status       string   `json:"status" enum:"moved,refused" example:"moved"`
	Reason       string   `json:"reason,omitempty" enum:"unknown_delivery,begun,sent,ended,unchanged,no_slot,too_late,in_the_past,after_removal" example:"begun"`
	Message      string   `json:"message,omitempty" doc:"The reason and the remedy, for people."`
	Before       instant  `json:"before,omitempty" doc:"The planned time before."`
	ScheduledFor instant  `json:"scheduled_for,omitempty" doc:"The new time."`
	OpensAt      instant  `json:"opens_at,omitempty" doc:"When the posting window is open then or next."`
	_            struct{} `additionalProperties:"true"`
}

type slotsInput struct {
	ChannelID string `query:"channel_id" required:"true" maxLength:"200" example:"news-ru" doc:"The channel."`
	After     string `query:"after" format:"date-time" example:"2026-12-01T10:00:00Z" doc:"From this instant; now by default."`
	Limit     int    `query:"limit" minimum:"1" maximum:"100" default:"10" doc:"How many."`
}

type slots struct {
	Items []slot `json:"items" nullable:"false"`
}

type slot struct {
	At time.Time `json:"at" example:"2026-12-01T10:00:00Z" doc:"The time of the slot."`
}

type calendarInput struct {
	From      string `query:"from" required:"true" format:"date-time" example:"2026-12-01T00:00:00Z" doc:"From this instant, with offset."`
	Until     string `query:"until" required:"true" format:"date-time" example:"2027-01-01T00:00:00Z" doc:"Before this instant, at most 100 days later."`
	ChannelID string `query:"channel_id" maxLength:"200" example:"news-ru" doc:"Only this channel."`
}

type calendar struct {
	Items []CalendarItem `json:"items" nullable:"false" doc:"At most 5,000, by time."`
	More  bool           `json:"more" doc:"true if there are more items, or more than 100,000 deliveries: choose a shorter interval or one channel."`
}

// CalendarItem is a post of the calendar.
type CalendarItem struct {
	At           time.Time `json:"at" example:"2026-12-01T10:00:00Z" doc:"The first time of its deliveries."`
	Kind         string    `json:"kind" enum:"sent,queued,expected" example:"queued" doc:"sent, waiting, or expected from a recurrence."`
	MessageID    *string   `json:"message_id" format:"uuid" nullable:"true"`
	RecurrenceID *string   `json:"recurrence_id" format:"uuid" nullable:"true" doc:"The recurrence that makes the post; null without one."`
	Channels     int       `json:"channels" example:"3"`
}

// CalendarDays selects days of the calendar.
type CalendarDays struct {
	From      string `query:"from" required:"true" format:"date-time" example:"2026-12-01T00:00:00Z" doc:"From this instant, with offset."`
	Until     string `query:"until" required:"true" format:"date-time" example:"2027-01-01T00:00:00Z" doc:"Before this instant, at most 100 days later."`
	Zone      string `query:"zone" maxLength:"100" default:"UTC" example:"Europe/Moscow" doc:"The time zone of the days."`
	ChannelID string `query:"channel_id" maxLength:"200" example:"news-ru" doc:"Only this channel."`
	Shown     int    `query:"shown" minimum:"0" maximum:"200" default:"3" doc:"How many items of each day, the first ones."`
}

type calendarOfDays struct {
	Days   []calendarDay `json:"days" nullable:"false" doc:"Days with items, by date."`
	Closed []time.Time   `json:"closed" nullable:"false" doc:"The beginnings of hours in which most channels are outside their posting window; of at most eight days."`
	More   bool          `json:"more" doc:"true if there are more than 100,000 deliveries: numbers may be too small. Choose a shorter interval or one channel."`
}

type calendarDay struct {
	Day      string          `json:"day" format:"date" example:"2026-12-01" doc:"The date in the zone."`
	Sent     int             `json:"sent" example:"12" doc:"The number of items that were sent."`
	Queued   int             `json:"queued" example:"3" doc:"The number of items that wait."`
	Expected int             `json:"expected" example:"1" doc:"The number of items that recurrences will bring."`
	Items    []calendarEntry `json:"items" nullable:"false" doc:"The first items, by time."`
}

type calendarEntry struct {
	CalendarItem

	Excerpt *string `json:"excerpt" nullable:"true" example:"Hello" doc:"The first 100 characters of the text."`
}

func registerMoves(d *server) {
	example := map[string]any{"shift_seconds": 7200, "reason": "the fair is later"}
	const description = "Moves what waits to another time; posting windows, rates, quotas and budgets hold as for a new post. A delivery whose call has begun stays. The answer has one result per delivery."
	rest.Register(d.Server, rest.Operation{
		ID: "reschedule-post", Method: http.MethodPost, Path: "/posts/{message_id}/reschedule", Summary: "Move a post in all channels where it waits", Answer: moved{}, Example: example,
		Description: description + " At most 1,000 deliveries.",
	}, func(ctx context.Context, in *postMoveInput) (rest.Reply, error) {
		return d.reschedule(ctx, in.AuditedWrite, in.Dry, in.Body, Move{MessageID: in.MessageID})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "reschedule-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/reschedule", Summary: "Move a delivery", Answer: moved{}, Example: example, Description: description,
	}, func(ctx context.Context, in *deliveryMoveInput) (rest.Reply, error) {
		reply, err := d.reschedule(ctx, in.AuditedWrite, in.Dry, in.Body, Move{DeliveryIDs: []string{in.DeliveryID}})
		if err != nil {
			return reply, err
		}
		var answer moved
		if err := json.Unmarshal(reply.Body, &answer); err != nil {
			return reply, err
		}
		if len(answer.Results) == 1 && answer.Results[0].Reason == "unknown_delivery" {
			return reply, problem.NotFound.Says(noDelivery)
		}
		return reply, nil
	})
	rest.Register(d.Server, rest.Operation{
		ID: "reschedule-deliveries", Method: http.MethodPost, Path: "/deliveries/reschedule", Summary: "Move deliveries", Answer: moved{},
		Example:     map[string]any{"delivery_ids": []string{"0199c6a0-0000-7000-8000-000000000000"}, "slot": "next_free", "reason": "the fair is later"},
		Description: description,
	}, func(ctx context.Context, in *deliveriesMoveInput) (rest.Reply, error) {
		return d.reschedule(ctx, in.AuditedWrite, in.Dry, in.Body.Rescheduling, Move{DeliveryIDs: in.Body.DeliveryIDs})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "list-slots", Method: http.MethodGet, Path: "/slots", Summary: "List the next free slots of a channel", Answer: slots{},
		Description: "Times inside the posting window that keep the smallest distance (min_gap_seconds), the quotas and the budget with all that is planned. Nothing is reserved: slot in a post or a move takes one.",
	}, func(ctx context.Context, in *slotsInput) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.NextFreeSlots(ctx, workspace, in.ChannelID, in.After, in.Limit)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "list-calendar-days", Method: http.MethodGet, Path: "/calendar/days", Summary: "Count the calendar by day", Answer: calendarOfDays{},
		Description: "The number of posts that were sent, wait or are expected on each day of a time zone, and the first of them. The cost does not depend on the size of the queue and its history.",
	}, func(ctx context.Context, in *CalendarDays) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.CalendarDays(ctx, workspace, *in)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-calendar", Method: http.MethodGet, Path: "/calendar", Summary: "Get the calendar of an interval", Answer: calendar{},
		Description: "Posts that were sent in an interval, and those that wait for a time in it. The channels of a post with one planned time are one item.",
	}, func(ctx context.Context, in *calendarInput) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.Calendar(ctx, workspace, in.From, in.Until, in.ChannelID)
		})
	})
}

// reschedule moves deliveries to the target in the body.
func (d *server) reschedule(ctx context.Context, in rest.AuditedWrite, dry rest.Dry, body Rescheduling, m Move) (rest.Reply, error) {
	to, err := body.move()
	if err != nil {
		return rest.Reply{}, err
	}
	to.MessageID, to.DeliveryIDs = m.MessageID, m.DeliveryIDs
	subject := m.MessageID
	if len(m.DeliveryIDs) == 1 {
		subject = m.DeliveryIDs[0]
	}
	return d.Do(ctx, in, rest.Change{Reason: body.Reason, DryRun: dry.DryRun, Subject: subject}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		return d.db.Reschedule(ctx, a, to)
	})
}
