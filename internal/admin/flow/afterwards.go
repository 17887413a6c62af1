package flow

import (
	"context"
	"encoding/json"
	"net/http"

	"autopost/internal/admin/door"
)

// rewording is what an edit says instead.
type rewording struct {
	Text           string         `json:"text,omitempty" example:"Sale, from Friday on"`
	ParseMode      string         `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	Link           string         `json:"link,omitempty" example:"https://example.org/4711"`
	DisablePreview bool           `json:"disable_preview,omitempty"`
	Buttons        [][]button     `json:"buttons,omitempty"`
	Variants       map[string]any `json:"variants,omitempty" doc:"As in a post; without one a variant has the new text, too."`
	Template       *postTemplate  `json:"template,omitempty"`
	_              struct{}       `additionalProperties:"true"`
}

// afterwards is what is asked for of a post that was sent.
type afterwards struct {
	At string `json:"at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"When; without it now."`
	door.Reasoned
}

type editing struct {
	Changes rewording `json:"changes" doc:"What the post says instead: a field that is given takes the place of the old one, null takes it away."`
	At      string    `json:"at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"When; without it now."`
	door.Reasoned
}

// asked is what became of a request.
type asked struct {
	Applied   bool         `json:"applied" doc:"Whether anything was asked for, or would be."`
	DryRun    bool         `json:"dry_run,omitempty"`
	Requested int          `json:"requested" example:"2"`
	Refused   int          `json:"refused" example:"0"`
	Results   []askedOfOne `json:"results" nullable:"false" doc:"The first 1,000, in the order of the channels, or of the ids."`
	_         struct{}     `additionalProperties:"true"`
}

type askedOfOne struct {
	DeliveryID string   `json:"delivery_id" format:"uuid"`
	ChannelID  string   `json:"channel_id,omitempty" example:"news-ru"`
	Applied    bool     `json:"applied"`
	ActID      string   `json:"act_id,omitempty" format:"uuid"`
	Reason     string   `json:"reason,omitempty" enum:"unknown_delivery,not_sent,platform_cannot,deleted,ids_unknown,validation_failed" example:"not_sent"`
	Message    string   `json:"message,omitempty" doc:"The reason in words, with what could be done instead."`
	_          struct{} `additionalProperties:"true"`
}

type actRow struct {
	ActID        string         `json:"act_id" format:"uuid"`
	DeliveryID   string         `json:"delivery_id" format:"uuid"`
	MessageID    string         `json:"message_id" format:"uuid"`
	ChannelID    string         `json:"channel_id" example:"news-ru"`
	Kind         string         `json:"kind" enum:"edit,delete,pin,unpin" example:"edit"`
	Status       string         `json:"status" enum:"queued,sending,retry,done,failed,void" example:"done" doc:"void: it will not be done, by a person's word or because the post is gone."`
	DueAt        instant        `json:"due_at"`
	NextAt       instant        `json:"next_at" doc:"When it is looked at next."`
	Attempt      int            `json:"attempt" example:"1"`
	RenderedText *string        `json:"rendered_text" nullable:"true" doc:"Of an edit: what the post is to say."`
	StartedAt    instant        `json:"started_at" nullable:"true"`
	LastError    *deliveryError `json:"last_error"`
	Operator     string         `json:"operator" example:"ann"`
	Reason       string         `json:"reason" example:"wrong price"`
	CreatedAt    instant        `json:"created_at"`
	UpdatedAt    instant        `json:"updated_at"`
	FinishedAt   instant        `json:"finished_at" nullable:"true"`
}

type actsInput struct {
	door.Page
	DeliveryID string `query:"delivery_id" format:"uuid" doc:"To this delivery."`
	MessageID  string `query:"message_id" format:"uuid" doc:"To the deliveries of this message."`
}

type cancelInput struct {
	door.Act
	door.Dry
	Body struct {
		ActIDs []string `json:"act_ids" minItems:"1" maxItems:"1000" nullable:"false" format:"uuid" doc:"At most 1,000."`
		door.Reasoned
	}
}

// cancelled is what became of acts.
type cancelled struct {
	Applied   bool             `json:"applied"`
	DryRun    bool             `json:"dry_run,omitempty"`
	Cancelled int              `json:"cancelled" example:"1"`
	Results   []map[string]any `json:"results" nullable:"false" doc:"In the order of the ids, each once: act_id, applied, before and after, or reason."`
	_         struct{}         `additionalProperties:"true"`
}

type deliveryAfterwards struct {
	door.Act
	door.Dry
	DeliveryPath
	Body afterwards
}

type postAfterwards struct {
	door.Act
	door.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"As an enqueue answered it."`
	Body      afterwards
}

// edit is the body of an edit, whose changes go to the database as they came.
type edit struct {
	Changes json.RawMessage `json:"changes"`
	At      string          `json:"at"`
	door.Reasoned
}

type deliveryEdit struct {
	door.Act
	door.Dry
	DeliveryPath
	Body edit
}

type postEdit struct {
	door.Act
	door.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"As an enqueue answered it."`
	Body      edit
}

var acts = door.List{Function: "list_acts", Key: door.ByID("act_id")}

func registerAfterwards(d *door.Door) {
	for _, kind := range []struct{ name, past, description string }{
		{"delete", "taken down", "Every message of the post is taken away at the platform, now or at the time given; what else was to be done to it is void. " +
			"Telegram lets a bot do so for 48 hours, later only with the right to delete messages."},
		{"pin", "pinned", "The first message of the post is put to the top of its chat. MAX has one such place in a chat, and it is taken from the one that had it."},
		{"unpin", "unpinned", "The first message of the post is taken from the top of its chat."},
	} {
		example := map[string]any{"reason": "wrong price"}
		door.Register(d, door.Operation{
			ID: kind.name + "-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/" + kind.name, Summary: "Have a sent post " + kind.past, Answer: asked{},
			Example: example, Description: kind.description,
		}, func(ctx context.Context, in *deliveryAfterwards) (door.Reply, error) {
			return d.Do(ctx, in.Act, request(kind.name, in.Dry, in.Body, nil, ofDelivery(in.DeliveryID)))
		})
		door.Register(d, door.Operation{
			ID: kind.name + "-post", Method: http.MethodPost, Path: "/posts/{message_id}/" + kind.name, Summary: "Have a post " + kind.past + " in all its channels", Answer: asked{},
			Example: example, Description: kind.description + " Each channel is answered for by itself.",
		}, func(ctx context.Context, in *postAfterwards) (door.Reply, error) {
			return d.Do(ctx, in.Act, request(kind.name, in.Dry, in.Body, nil, ofMessage(in.MessageID)))
		})
	}
	registerEdits(d)
	door.Register(d, door.Operation{
		ID: "list-acts", Method: http.MethodGet, Path: "/acts", Summary: "What is done to sent posts, the newest first", Answer: door.Listed[actRow]{},
		Description: "Edits, removals and pins that were asked for, and what became of them; by delivery and message.",
	}, func(ctx context.Context, in *actsInput) (door.Reply, error) {
		return d.Read(ctx, acts, in.Page, map[string]any{"delivery_id": in.DeliveryID, "message_id": in.MessageID})
	})
	door.Register(d, door.Operation{
		ID: "cancel-acts", Method: http.MethodPost, Path: "/acts/cancel", Summary: "Call off what waits to be done to sent posts", Answer: cancelled{},
		Example:     map[string]any{"act_ids": []string{"0199c6a0-0000-7000-8000-000000000000"}, "reason": "it was right after all"},
		Description: "Acts that wait are void; one whose call has begun is not called back.",
	}, func(ctx context.Context, in *cancelInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "cancel_acts", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"act_ids": in.Body.ActIDs}})
	})
}

func registerEdits(d *door.Door) {
	example := map[string]any{"changes": map[string]any{"text": "Sale, from Friday on"}, "reason": "wrong day"}
	const description = "What the post says is judged and rendered as an enqueue would, and put in the place of what was sent; its messages stay the same in number and media. " +
		"Telegram, MAX and YouTube (title and description) edit, X does not. The same content stays taken for its dedup window."
	door.Register(d, door.Operation{
		ID: "edit-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/edit", Summary: "Have a sent post say something else", Answer: asked{}, Body: editing{}, Example: example,
		Description: description,
	}, func(ctx context.Context, in *deliveryEdit) (door.Reply, error) {
		return editSent(ctx, d, in.Act, in.Dry, in.Body, ofDelivery(in.DeliveryID))
	})
	door.Register(d, door.Operation{
		ID: "edit-post", Method: http.MethodPost, Path: "/posts/{message_id}/edit", Summary: "Have a post say something else in all its channels", Answer: asked{}, Body: editing{}, Example: example,
		Description: description + " Each channel is answered for by itself.",
	}, func(ctx context.Context, in *postEdit) (door.Reply, error) {
		return editSent(ctx, d, in.Act, in.Dry, in.Body, ofMessage(in.MessageID))
	})
}

func editSent(ctx context.Context, d *door.Door, act door.Act, dry door.Dry, body edit, subject map[string]any) (door.Reply, error) {
	changes, err := healed(body.Changes)
	if err != nil {
		return door.Reply{}, door.Wrong("body.changes", "is missing or no JSON", "send what the post says instead: {\"text\": \"…\"}")
	}
	return d.Do(ctx, act, request("edit", dry, afterwards{At: body.At, Reasoned: body.Reasoned}, changes, subject))
}

func ofDelivery(id string) map[string]any {
	return map[string]any{"message_id": nil, "delivery_ids": []string{id}}
}

func ofMessage(id string) map[string]any {
	return map[string]any{"message_id": id, "delivery_ids": nil}
}

// request is the write of an act on the subject.
func request(kind string, dry door.Dry, body afterwards, changes any, subject map[string]any) door.Write {
	subject["kind"], subject["changes"], subject["at"] = kind, changes, nil
	if body.At != "" {
		subject["at"] = body.At
	}
	return door.Write{Function: "request_acts", Reason: body.Reason, DryRun: dry.DryRun, Args: subject}
}
