package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// MessageRow is a message in a list.
type MessageRow struct {
	MessageID   string         `json:"message_id" format:"uuid"`
	Excerpt     *string        `json:"excerpt" nullable:"true" example:"Hello" doc:"The first 200 characters of the text."`
	Media       int            `json:"media" doc:"How many media."`
	Tags        []string       `json:"tags" nullable:"false"`
	SourceRef   *string        `json:"source_ref" nullable:"true" example:"cms-4711"`
	ContentHash string         `json:"content_hash"`
	SeenCount   int64          `json:"seen_count" example:"1" doc:"How often this content was received."`
	RunID       *string        `json:"run_id" format:"uuid" nullable:"true" doc:"The first run with this content."`
	CreatedAt   time.Time      `json:"created_at"`
	LastSeenAt  time.Time      `json:"last_seen_at"`
	Counts      map[string]int `json:"counts" doc:"Deliveries by status. In a list, of the first 1,000 deliveries."`
	Source      *origin        `json:"source" doc:"The way of the first post with this content."`
}

// origin is messages.source.
type origin struct {
	Kind       string         `json:"kind" enum:"push,pull,api,command,event,file,page,recurrence" example:"push"`
	EndpointID *string        `json:"endpoint_id" nullable:"true" example:"cms"`
	SourceID   *string        `json:"source_id" nullable:"true" doc:"The source, if it was polled."`
	Fields     map[string]any `json:"fields,omitempty" doc:"The unknown fields of the post; not in a list."`
}

type message struct {
	MessageRow
	HashVersion int            `json:"hash_version" example:"1"`
	Payload     map[string]any `json:"payload" doc:"The post in normalized form."`
	Deliveries  []cell         `json:"deliveries" nullable:"false" doc:"The first 1,000 deliveries by channel."`
}

// cell is the delivery of a message to one channel.
type cell struct {
	DeliveryID        string         `json:"delivery_id" format:"uuid"`
	ChannelID         string         `json:"channel_id" example:"news-ru"`
	Platform          string         `json:"platform" example:"telegram"`
	Status            string         `json:"status" example:"sent"`
	Attempt           int            `json:"attempt" example:"1"`
	DueAt             instant        `json:"due_at" nullable:"true" doc:"null if it waits for more than a time."`
	SentAt            instant        `json:"sent_at" nullable:"true"`
	ProviderMessageID *string        `json:"provider_message_id" nullable:"true"`
	LastError         *deliveryError `json:"last_error"`
	Text              string         `json:"text" example:"Hello"`
	Meta              map[string]any `json:"meta"`
}

type messagesInput struct {
	rest.Page
	Window
	Status    string `query:"status" enum:"queued,claimed,sending,sent,retry,deduped,failed_permanent,dead" doc:"Only messages with a delivery in this status."`
	Text      string `query:"q" maxLength:"200" example:"bridge" doc:"Only messages with all these words, or words that begin with them, in text, tags or source_ref: the newest 1,000. #tag means a tag. Case does not matter."`
	ChannelID string `query:"channel_id" doc:"Only messages with a delivery for this channel; with status, in that status."`
	Platform  string `query:"platform" enum:"telegram,max,x,youtube" doc:"Only messages with a delivery on this platform; with status, in that status. If nothing else narrows the list, the next 10,000 messages are looked at."`
}

type messageInput struct {
	MessageID string `path:"message_id" format:"uuid" doc:"The message_id in the answer to an enqueue."`
}

var messages = rest.List{Function: "list_messages", Key: rest.ByID("message_id")}

func registerMessages(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-messages", Method: http.MethodGet, Path: "/messages", Summary: "List messages, newest first", Answer: rest.Listed[MessageRow]{},
		Description: "Each content once, by the time when it was first received. Filters: status, channel, platform and time.",
	}, func(ctx context.Context, in *messagesInput) (rest.Reply, error) { return listMessages(ctx, d, in) })
	rest.Register(d.Server, rest.Operation{
		ID: "get-message", Method: http.MethodGet, Path: "/messages/{message_id}", Summary: "Get a message with its deliveries", Answer: message{},
		Description: "One message in normalized form, with one delivery per channel.",
	}, func(ctx context.Context, in *messageInput) (rest.Reply, error) { return getMessage(ctx, d, in) })
}

func listMessages(ctx context.Context, d *server, in *messagesInput) (rest.Reply, error) {
	return d.Read(ctx, messages, in.Page, map[string]any{"status": in.Status, "channel_id": in.ChannelID, "platform": in.Platform, "text": in.Text, "since": in.Since, "until": in.Until})
}

func getMessage(ctx context.Context, d *server, in *messageInput) (rest.Reply, error) {
	return d.Get(ctx, "This workspace has no such message.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
		return d.db.GetMessage(ctx, workspace, in.MessageID)
	})
}
