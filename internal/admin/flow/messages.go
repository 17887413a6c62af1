package flow

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

// MessageRow is a message in a list.
type MessageRow struct {
	MessageID   string    `json:"message_id" format:"uuid"`
	Excerpt     *string   `json:"excerpt" nullable:"true" example:"Hello" doc:"The first 200 characters of the text."`
	Media       int       `json:"media" doc:"How many."`
	Tags        []string  `json:"tags" nullable:"false"`
	SourceRef   *string   `json:"source_ref" nullable:"true" example:"cms-4711"`
	ContentHash string    `json:"content_hash"`
	SeenCount   int64     `json:"seen_count" example:"1" doc:"How often this content came."`
	RunID       *string   `json:"run_id" format:"uuid" nullable:"true" doc:"The first run that brought it."`
	CreatedAt   time.Time `json:"created_at"`
	LastSeenAt  time.Time `json:"last_seen_at"`
}

type message struct {
	MessageRow
	HashVersion int            `json:"hash_version" example:"1"`
	Payload     map[string]any `json:"payload" doc:"The post in its one normal form."`
	Counts      map[string]int `json:"counts" doc:"Deliveries by status."`
	Deliveries  []cell         `json:"deliveries" nullable:"false" doc:"The first 1,000, by channel."`
}

// cell is a post in one channel.
type cell struct {
	DeliveryID        string         `json:"delivery_id" format:"uuid"`
	ChannelID         string         `json:"channel_id" example:"news-ru"`
	Platform          string         `json:"platform" example:"telegram"`
	Status            string         `json:"status" example:"sent"`
	Attempt           int            `json:"attempt" example:"1"`
	DueAt             instant        `json:"due_at" nullable:"true" doc:"null where time alone does not bring it."`
	SentAt            instant        `json:"sent_at" nullable:"true"`
	ProviderMessageID *string        `json:"provider_message_id" nullable:"true"`
	LastError         *deliveryError `json:"last_error"`
	Text              string         `json:"text" example:"Hello"`
	Meta              map[string]any `json:"meta"`
}

type messagesInput struct {
	door.Page
	Window
	Status    string `query:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" doc:"With a delivery in this status."`
	ChannelID string `query:"channel_id" doc:"With a delivery for this channel, and in that status where one is given."`
}

type messageInput struct {
	MessageID string `path:"message_id" format:"uuid" doc:"As an enqueue answered it."`
}

var messages = door.List{Function: "list_messages", Key: door.ByID("message_id")}

func registerMessages(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-messages", Method: http.MethodGet, Path: "/messages", Summary: "Messages, the newest first", Answer: door.Listed[MessageRow]{},
		Description: "Content that was taken in, once each, by when it was first seen; by status, channel and time.",
	}, func(ctx context.Context, in *messagesInput) (door.Reply, error) { return listMessages(ctx, d, in) })
	door.Register(d, door.Operation{
		ID: "get-message", Method: http.MethodGet, Path: "/messages/{message_id}", Summary: "A message with all its deliveries", Answer: message{},
		Description: "One message in its normal form, with a delivery for each channel.",
	}, func(ctx context.Context, in *messageInput) (door.Reply, error) { return getMessage(ctx, d, in) })
}

func listMessages(ctx context.Context, d *door.Door, in *messagesInput) (door.Reply, error) {
	return d.Read(ctx, messages, in.Page, map[string]any{"status": in.Status, "channel_id": in.ChannelID, "since": in.Since, "until": in.Until})
}

func getMessage(ctx context.Context, d *door.Door, in *messageInput) (door.Reply, error) {
	return d.Look(ctx, "get_message", "This workspace has no such message.", map[string]any{"message_id": in.MessageID})
}
