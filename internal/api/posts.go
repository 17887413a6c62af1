package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// post is a raw payload.
type post struct {
	SourceRef      string         `json:"source_ref,omitempty" example:"cms-4711" doc:"Your id of the post. An endpoint takes it once while its receipt lives (receipt_ttl_hours)."`
	Text           string         `json:"text,omitempty" example:"Hello"`
	ParseMode      string         `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	Link           string         `json:"link,omitempty" example:"https://example.org/4711"`
	Links          []string       `json:"links,omitempty"`
	Media          []medium       `json:"media,omitempty"`
	Tags           []string       `json:"tags,omitempty"`
	DisablePreview bool           `json:"disable_preview,omitempty"`
	Buttons        [][]button     `json:"buttons,omitempty"`
	ScheduledFor   string         `json:"scheduled_for,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00"`
	RemoveAt       string         `json:"remove_at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"When the post is deleted, if the platform supports it."`
	Variants       map[string]any `json:"variants,omitempty" doc:"Other texts by platform or channel: {\"x\": {\"text\": \"…\"}}."`
	Routing        *routing       `json:"routing,omitempty"`
	Template       *postTemplate  `json:"template,omitempty"`
	_              struct{}       `additionalProperties:"true"`
}

type medium struct {
	Type    string `json:"type" enum:"image,video,audio,file,animation" example:"image"`
	URL     string `json:"url,omitempty" example:"https://example.org/1.png" doc:"Fetched before the post is enqueued."`
	BlobRef string `json:"blob_ref,omitempty" doc:"The blob_ref in the answer of POST /api/v1/media."`
	FileID  string `json:"file_id,omitempty" doc:"The platform's id of a file (telegram, max, x)."`
	// AttachmentToken and FileID belong to one credential.
	AttachmentToken string      `json:"attachment_token,omitempty" doc:"A token of MAX."`
	AuthRef         string      `json:"auth_ref,omitempty" doc:"The credential of file_id or attachment_token; required if the channels have several."`
	Caption         string      `json:"caption,omitempty"`
	Alt             string      `json:"alt,omitempty"`
	Meta            *mediumMeta `json:"meta,omitempty"`
}

type mediumMeta struct {
	Filename string  `json:"filename,omitempty" example:"price.pdf" doc:"The name that a file has on the platform."`
	Width    int     `json:"width,omitempty" doc:"Pixels."`
	Height   int     `json:"height,omitempty" doc:"Pixels."`
	Duration float64 `json:"duration,omitempty" doc:"Seconds."`
}

type button struct {
	Text string `json:"text" example:"Open"`
	URL  string `json:"url" example:"https://example.org/4711"`
}

type routing struct {
	IncludeChannels []string `json:"include_channels,omitempty" example:"[\"news-ru\"]"`
	ExcludeChannels []string `json:"exclude_channels,omitempty"`
}

type postTemplate struct {
	Name string            `json:"name" example:"digest"`
	Vars map[string]string `json:"vars,omitempty"`
}

// submitted is the answer to a submitted post.
type submitted struct {
	Status       string       `json:"status" enum:"enqueued,accepted,duplicate" example:"enqueued" doc:"accepted: stored, but its media are fetched first; see the run."`
	RunID        string       `json:"run_id" format:"uuid"`
	TraceID      string       `json:"trace_id,omitempty" format:"uuid"`
	MessageID    *string      `json:"message_id,omitempty" format:"uuid" nullable:"true"`
	SubmissionID string       `json:"submission_id,omitempty" format:"uuid"`
	Enqueued     int          `json:"enqueued" example:"2"`
	Deduped      int          `json:"deduped"`
	Invalid      int          `json:"invalid"`
	Skipped      int          `json:"skipped"`
	Fanout       string       `json:"fanout,omitempty" enum:"done,running"`
	Deliveries   []forChannel `json:"deliveries,omitempty" nullable:"false" doc:"The first 1,000 deliveries."`
	Warnings     []string     `json:"warnings,omitempty" nullable:"false" doc:"Fields without effect: unknown fields and channels, a time in the past."`
	_            struct{}     `additionalProperties:"true"`
}

type forChannel struct {
	ChannelID  string   `json:"channel_id" example:"news-ru"`
	DeliveryID *string  `json:"delivery_id,omitempty" format:"uuid" nullable:"true"`
	Status     string   `json:"status" example:"queued"`
	Reason     *string  `json:"reason,omitempty" nullable:"true"`
	_          struct{} `additionalProperties:"true"`
}

type submitInput struct {
	rest.Once
	EndpointID string `query:"endpoint_id" doc:"The endpoint of the post; by default the only enabled one."`
	Body       json.RawMessage
}

var postExample = map[string]any{"text": "Hello", "tags": []string{"listing"}}

func registerPosts(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "submit-post", Method: http.MethodPost, Path: "/posts", Summary: "Publish a post", Status: http.StatusAccepted, Also: []int{http.StatusOK}, Answer: submitted{}, Body: post{}, Example: postExample,
		Description: "Enqueues one post for every channel that its routing selects, or stores it while its media are fetched. The status is 202 after the post is stored. " +
			"A channel does not get the same content again; if all channels have it, the status is 200. A repeated source_ref is also 200, with the ids of the first answer. An invalid post is 422 with all errors.",
	}, func(ctx context.Context, in *submitInput) (rest.Reply, error) {
		post, err := withoutSurrogates(in.Body)
		if err != nil {
			return rest.Reply{}, err
		}
		reply, err := d.Write(ctx, in.Once, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.SubmitPost(ctx, a, in.EndpointID, "api", post)
		})
		if err != nil {
			return reply, ofParameter(err)
		}
		return verdictOf(reply)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "list-posts", Method: http.MethodGet, Path: "/posts", Summary: "List posts, newest first", Answer: rest.Listed[MessageRow]{},
		Description: "Each content once, with the beginning of its text.",
	}, func(ctx context.Context, in *messagesInput) (rest.Reply, error) { return listMessages(ctx, d, in) })
	rest.Register(d.Server, rest.Operation{
		ID: "get-post", Method: http.MethodGet, Path: "/posts/{message_id}", Summary: "Get a post with its channels", Answer: message{},
		Description: "One post with its delivery for each channel.",
	}, func(ctx context.Context, in *messageInput) (rest.Reply, error) { return getMessage(ctx, d, in) })
}

// ofParameter renames the field of an error about the endpoint to the parameter of the caller.
func ofParameter(err error) error {
	if p, ok := errors.AsType[*problem.Problem](err); ok && len(p.Errors) == 1 && p.Errors[0].Field == "endpoint_id" {
		return rest.Wrong("query.endpoint_id", p.Errors[0].Reason, "add ?endpoint_id= with the id of an enabled endpoint of kind webhook_push: GET /api/v1/endpoints lists them")
	}
	return err
}

// withoutSurrogates returns a JSON value in which unpaired surrogates are replaced by U+FFFD, because PostgreSQL refuses them.
func withoutSurrogates(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	if err := decodeExactly(raw, &value); err != nil {
		return nil, rest.Wrong("body", "must be JSON", "send a post as an object")
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil, rest.Wrong("body", "must be JSON", "send a post as an object")
	}
	return out, nil
}

// verdictOf sets the status of an answer about a post. A refused post is a problem.
func verdictOf(reply rest.Reply) (rest.Reply, error) {
	var a struct {
		Status string          `json:"status"`
		Errors []problem.Fault `json:"errors"`
	}
	if err := json.Unmarshal(reply.Body, &a); err != nil {
		return reply, err
	}
	switch a.Status {
	case "rejected", "invalid":
		p := problem.New(http.StatusUnprocessableEntity, "The post is invalid: see errors.", a.Errors...)
		p.Reason = a.Status
		return reply, p
	case "duplicate":
		reply.Status = http.StatusOK
	}
	return reply, nil
}
