package api

import (
	"context"
	"encoding/json"
	"net/http"

	"autopost"
	"autopost/internal/api/rest"
)

// Rewording holds the new fields of an edit.
type Rewording struct {
	Text           string                  `json:"text,omitempty" example:"Sale, from Friday on"`
	ParseMode      string                  `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	Link           string                  `json:"link,omitempty" example:"https://example.org/4711"`
	DisablePreview bool                    `json:"disable_preview,omitempty"`
	Buttons        [][]button              `json:"buttons,omitempty"`
	Variants       map[string]variant      `json:"variants,omitempty" doc:"As in a post. Without them every channel gets the new text."`
	Template       *postTemplate           `json:"template,omitempty"`
	Thread         map[string]rewordedPart `json:"thread,omitempty" doc:"New texts of parts of a thread, by the number of the part from 2. A list of all parts is accepted, too."`
	FirstComment   string                  `json:"first_comment,omitempty" doc:"The new text of the first comment."`
	_              struct{}                `additionalProperties:"true"`
}

// rewordedPart is the new text of a part of a thread.
type rewordedPart struct {
	Text string `json:"text" example:"And there is less" doc:"The new text."`
}

// afterwards is the body of a post change without new content.
type afterwards struct {
	At string `json:"at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"The time of the change; now by default."`
	rest.Reasoned
}

type editing struct {
	Changes Rewording `json:"changes" doc:"The new fields of the post. A given field replaces the old one; null removes it."`
	At      string    `json:"at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"The time of the change; now by default."`
	rest.Reasoned
}

// asked is the answer to a requested post change.
type asked struct {
	Applied   bool         `json:"applied" doc:"true if a change was requested, or would be in a dry run."`
	DryRun    bool         `json:"dry_run,omitempty"`
	Requested int          `json:"requested" example:"2"`
	Refused   int          `json:"refused" example:"0"`
	Results   []askedOfOne `json:"results" nullable:"false" doc:"The first 1,000, in the order of the channels or of the ids."`
	_         struct{}     `additionalProperties:"true"`
}

// edited is the answer to an edit of a post, which may have been sent or wait.
type edited struct {
	Applied   bool          `json:"applied" doc:"true if the post was changed anywhere, or would be in a dry run."`
	DryRun    bool          `json:"dry_run,omitempty"`
	MessageID *string       `json:"message_id,omitempty" format:"uuid" nullable:"true" doc:"The message of the new content, where it is queued."`
	Requested int           `json:"requested" example:"1" doc:"The number of requested changes of sent posts."`
	Replaced  int           `json:"replaced,omitempty" example:"1" doc:"The number of replaced deliveries."`
	Pending   int           `json:"pending,omitempty" doc:"The number of deliveries and parts whose new content waits for a decision."`
	Refused   int           `json:"refused" example:"0"`
	Results   []editedOfOne `json:"results" nullable:"false" doc:"The first 1,000."`
	_         struct{}      `additionalProperties:"true"`
}

type editedOfOne struct {
	DeliveryID      string   `json:"delivery_id,omitempty" format:"uuid"`
	ChannelID       string   `json:"channel_id,omitempty" example:"news-ru"`
	Applied         bool     `json:"applied"`
	Change          string   `json:"change,omitempty" enum:"edited,replaced,pending,refused" example:"replaced" doc:"edited: a change of the sent post was requested. pending: the new content waits for a decision."`
	ActID           string   `json:"act_id,omitempty" format:"uuid"`
	NewDeliveryID   string   `json:"new_delivery_id,omitempty" format:"uuid" doc:"The delivery of the new content."`
	MessageID       string   `json:"message_id,omitempty" format:"uuid" doc:"The message of the new content."`
	SubmissionID    string   `json:"submission_id,omitempty" format:"uuid" doc:"The submission that waits; of a part that waited before, the old one."`
	NewSubmissionID string   `json:"new_submission_id,omitempty" format:"uuid" doc:"The submission that replaces a part that waited for a decision."`
	Reason          string   `json:"reason,omitempty" example:"begun" doc:"As for edit-delivery, and begun, duplicate, unchanged."`
	Message         string   `json:"message,omitempty" doc:"The reason and the remedy, for people."`
	_               struct{} `additionalProperties:"true"`
}

// postEditing holds the new fields of a post. Media change only where the post waits.
type postEditing struct {
	Changes postRewording `json:"changes" doc:"The new fields of the post. A given field replaces the old one; null removes it."`
	At      string        `json:"at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"The time of the change of sent posts; now by default."`
	rest.Reasoned
}

type postRewording struct {
	Rewording
	Media []medium `json:"media,omitempty" nullable:"false" maxItems:"50" doc:"New media, by blob_ref. Only where the post waits."`
	Links []string `json:"links,omitempty" nullable:"false" maxItems:"50" doc:"Only where the post waits."`
	Tags  []string `json:"tags,omitempty" nullable:"false" maxItems:"100" doc:"Only where the post waits. They do not change its channels."`
	_     struct{} `additionalProperties:"true"`
}

type askedOfOne struct {
	DeliveryID string   `json:"delivery_id" format:"uuid"`
	ChannelID  string   `json:"channel_id,omitempty" example:"news-ru"`
	Applied    bool     `json:"applied"`
	ActID      string   `json:"act_id,omitempty" format:"uuid"`
	Reason     string   `json:"reason,omitempty" enum:"unknown_delivery,not_sent,platform_cannot,deleted,ids_unknown,validation_failed" example:"not_sent"`
	Message    string   `json:"message,omitempty" doc:"The reason and the remedy, for people."`
	_          struct{} `additionalProperties:"true"`
}

type actRow struct {
	ActID        string         `json:"act_id" format:"uuid"`
	DeliveryID   string         `json:"delivery_id" format:"uuid"`
	MessageID    string         `json:"message_id" format:"uuid"`
	ChannelID    string         `json:"channel_id" example:"news-ru"`
	Kind         string         `json:"kind" enum:"edit,delete,pin,unpin" example:"edit"`
	Status       string         `json:"status" enum:"queued,sending,retry,done,failed,void" example:"done" doc:"void: the change was cancelled, or the post no longer exists."`
	DueAt        instant        `json:"due_at"`
	NextAt       instant        `json:"next_at" doc:"When the next attempt is due."`
	Attempt      int            `json:"attempt" example:"1"`
	RenderedText *string        `json:"rendered_text" nullable:"true" doc:"The new text of an edit."`
	StartedAt    instant        `json:"started_at" nullable:"true"`
	LastError    *deliveryError `json:"last_error"`
	Operator     string         `json:"operator" example:"ann"`
	Reason       string         `json:"reason" example:"wrong price"`
	CreatedAt    instant        `json:"created_at"`
	UpdatedAt    instant        `json:"updated_at"`
	FinishedAt   instant        `json:"finished_at" nullable:"true"`
}

type actsInput struct {
	rest.Page
	DeliveryID string `query:"delivery_id" format:"uuid" doc:"Only changes of this delivery."`
	MessageID  string `query:"message_id" format:"uuid" doc:"Only changes of the deliveries of this message."`
}

type cancelInput struct {
	rest.AuditedWrite
	rest.Dry
	Body struct {
		ActIDs []string `json:"act_ids" minItems:"1" maxItems:"1000" nullable:"false" format:"uuid" doc:"The ids of the changes."`
		rest.Reasoned
	}
}

// cancelled is the answer to a cancellation.
type cancelled struct {
	Applied   bool             `json:"applied"`
	DryRun    bool             `json:"dry_run,omitempty"`
	Cancelled int              `json:"cancelled" example:"1"`
	Results   []map[string]any `json:"results" nullable:"false" doc:"One row per id, in the order of the ids: act_id, applied, and before and after, or reason."`
	_         struct{}         `additionalProperties:"true"`
}

type deliveryAfterwards struct {
	rest.AuditedWrite
	rest.Dry
	DeliveryPath
	Body afterwards
}

type postAfterwards struct {
	rest.AuditedWrite
	rest.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"The message_id in the answer to an enqueue."`
	Body      afterwards
}

// edit is the body of an edit. Its changes go to the database unchanged.
type edit struct {
	Changes json.RawMessage `json:"changes"`
	At      string          `json:"at"`
	rest.Reasoned
}

type deliveryEdit struct {
	rest.AuditedWrite
	rest.Dry
	DeliveryPath
	Body edit
}

type postEdit struct {
	rest.AuditedWrite
	rest.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"The message_id in the answer to an enqueue."`
	Body      edit
}

var acts = rest.List{Function: "list_acts", Key: rest.ByID("act_id")}

func registerAfterwards(d *server) {
	for _, kind := range []struct {
		name              autopost.ChangeKind
		verb, description string
	}{
		{"delete", "Delete", "Deletes every message of the post at the platform, now or at the given time. Other waiting changes become void. " +
			"Telegram allows this for 48 hours, later only with the right to delete messages."},
		{"pin", "Pin", "Pins the first message of each part of the post in its chat. A chat in MAX has one pinned message: part 1 replaces it."},
		{"unpin", "Unpin", "Unpins the messages that a pin pins."},
	} {
		example := map[string]any{"reason": "wrong price"}
		rest.Register(d.Server, rest.Operation{
			ID: string(kind.name) + "-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/" + string(kind.name), Summary: kind.verb + " a sent post", Answer: asked{},
			Example: example, Description: kind.description,
		}, func(ctx context.Context, in *deliveryAfterwards) (rest.Reply, error) {
			return d.request(ctx, in.AuditedWrite, in.Dry, in.Body, ActRequest{Kind: kind.name, DeliveryIDs: []string{in.DeliveryID}})
		})
		rest.Register(d.Server, rest.Operation{
			ID: string(kind.name) + "-post", Method: http.MethodPost, Path: "/posts/{message_id}/" + string(kind.name), Summary: kind.verb + " a post in all its channels", Answer: asked{},
			Example: example, Description: kind.description + " The answer has one result per channel.",
		}, func(ctx context.Context, in *postAfterwards) (rest.Reply, error) {
			return d.request(ctx, in.AuditedWrite, in.Dry, in.Body, ActRequest{Kind: kind.name, MessageID: in.MessageID})
		})
	}
	registerEdits(d)
	rest.Register(d.Server, rest.Operation{
		ID: "list-acts", Method: http.MethodGet, Path: "/acts", Summary: "List changes of sent posts, newest first", Answer: rest.Listed[actRow]{},
		Description: "Requested edits, deletions and pins with their status. Filters: delivery and message.",
	}, func(ctx context.Context, in *actsInput) (rest.Reply, error) {
		return d.Read(ctx, acts, in.Page, map[string]any{"delivery_id": in.DeliveryID, "message_id": in.MessageID})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "cancel-acts", Method: http.MethodPost, Path: "/acts/cancel", Summary: "Cancel waiting changes of sent posts", Answer: cancelled{},
		Example:     map[string]any{"act_ids": []string{"0199c6a0-0000-7000-8000-000000000000"}, "reason": "the price was right"},
		Description: "Waiting changes become void. A change whose call has started continues.",
	}, func(ctx context.Context, in *cancelInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.CancelActs(ctx, a, in.Body.ActIDs)
		})
	})
}

func registerEdits(d *server) {
	example := map[string]any{"changes": map[string]any{"text": "Sale, from Friday on"}, "reason": "wrong day"}
	const description = "Validates and renders the new content like an enqueue and replaces the sent content. The number of messages and their media stay. " +
		"Telegram, MAX and YouTube (title and description) support edits, X does not. The old content stays in the dedup window."
	rest.Register(d.Server, rest.Operation{
		ID: "edit-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/edit", Summary: "Edit a sent post", Answer: asked{}, Body: editing{}, Example: example,
		Description: description,
	}, func(ctx context.Context, in *deliveryEdit) (rest.Reply, error) {
		return d.editSent(ctx, in.AuditedWrite, in.Dry, in.Body, ActRequest{DeliveryIDs: []string{in.DeliveryID}})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "edit-post", Method: http.MethodPost, Path: "/posts/{message_id}/edit", Summary: "Edit a post in all its channels", Answer: edited{}, Body: postEditing{}, Example: example,
		Description: description + " Where the post waits, the new content replaces it and takes its channels and times; in moderated channels it waits for a decision. The answer has one result per channel.",
	}, func(ctx context.Context, in *postEdit) (rest.Reply, error) {
		changes, err := in.Body.given()
		if err != nil {
			return rest.Reply{}, err
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.MessageID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EditPost(ctx, a, in.MessageID, changes, in.Body.At)
		})
	})
}

// given returns the changes of an edit as JSON that PostgreSQL accepts.
func (e edit) given() (json.RawMessage, error) {
	changes, err := withoutSurrogates(e.Changes)
	if err != nil {
		return nil, rest.Wrong("body.changes", "must be a JSON object", "send the new fields of the post: {\"text\": \"…\"}")
	}
	return changes, nil
}

func (d *server) editSent(ctx context.Context, in rest.AuditedWrite, dry rest.Dry, body edit, r ActRequest) (rest.Reply, error) {
	changes, err := body.given()
	if err != nil {
		return rest.Reply{}, err
	}
	r.Kind, r.Changes = autopost.ChangeEdit, changes
	return d.request(ctx, in, dry, afterwards{At: body.At, Reasoned: body.Reasoned}, r)
}

// request requests a post change.
func (d *server) request(ctx context.Context, in rest.AuditedWrite, dry rest.Dry, body afterwards, r ActRequest) (rest.Reply, error) {
	r.At = body.At
	c := rest.Change{Reason: body.Reason, DryRun: dry.DryRun, Subject: r.MessageID}
	return d.Do(ctx, in, c, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		return d.db.RequestActs(ctx, a, r)
	})
}
