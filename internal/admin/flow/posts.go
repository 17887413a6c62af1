package flow

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"autopost/internal/admin/door"
)

// Post is a raw payload; see surface "raw payload".
type post struct {
	SourceRef      string         `json:"source_ref,omitempty" example:"cms-4711" doc:"Your own name for the post; it is kept with it."`
	Text           string         `json:"text,omitempty" example:"Hello"`
	ParseMode      string         `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	Link           string         `json:"link,omitempty" example:"https://example.org/4711"`
	Links          []string       `json:"links,omitempty"`
	Media          []medium       `json:"media,omitempty"`
	Tags           []string       `json:"tags,omitempty"`
	DisablePreview bool           `json:"disable_preview,omitempty"`
	Buttons        [][]button     `json:"buttons,omitempty"`
	ScheduledFor   string         `json:"scheduled_for,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00"`
	RemoveAt       string         `json:"remove_at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"When it is taken down again, where the platform lets it be."`
	Variants       map[string]any `json:"variants,omitempty" doc:"Other texts by platform or channel: {\"x\": {\"text\": \"…\"}}."`
	Routing        *routing       `json:"routing,omitempty"`
	Template       *postTemplate  `json:"template,omitempty"`
	_              struct{}       `additionalProperties:"true"`
}

type medium struct {
	Type    string `json:"type" enum:"image,video,audio,file,animation" example:"image"`
	URL     string `json:"url,omitempty" example:"https://example.org/1.png" doc:"Fetched before the post is enqueued."`
	BlobRef string `json:"blob_ref,omitempty" doc:"As POST /api/v1/media answered it."`
	Caption string `json:"caption,omitempty"`
	Alt     string `json:"alt,omitempty"`
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

// submitted is what became of a post.
type submitted struct {
	Status       string       `json:"status" enum:"enqueued,accepted,duplicate" example:"enqueued" doc:"accepted: kept, its media are fetched first; see the run."`
	RunID        string       `json:"run_id" format:"uuid"`
	TraceID      string       `json:"trace_id,omitempty" format:"uuid"`
	MessageID    *string      `json:"message_id,omitempty" format:"uuid" nullable:"true"`
	SubmissionID string       `json:"submission_id,omitempty" format:"uuid"`
	Enqueued     int          `json:"enqueued" example:"2"`
	Deduped      int          `json:"deduped"`
	Invalid      int          `json:"invalid"`
	Skipped      int          `json:"skipped"`
	Fanout       string       `json:"fanout,omitempty" enum:"done,running"`
	Deliveries   []forChannel `json:"deliveries,omitempty" nullable:"false" doc:"The first 1,000."`
	Warnings     []string     `json:"warnings,omitempty" nullable:"false" doc:"Fields that mean nothing here, and channels named that are not there."`
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
	door.Once
	EndpointID string `query:"endpoint_id" doc:"The endpoint that the post is booked on; without it the only enabled one."`
	Body       json.RawMessage
}

var postExample = map[string]any{"text": "Hello", "tags": []string{"listing"}}

func registerPosts(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "submit-post", Method: http.MethodPost, Path: "/posts", Summary: "Publish a post", Status: http.StatusAccepted, Also: []int{http.StatusOK}, Answer: submitted{}, Body: post{}, Example: postExample,
		Description: "Takes one post and enqueues it for every channel that it is routed to, or keeps it while its media are fetched. 202 once it is stored for good. " +
			"A channel that has the same content already does not get it again; where all have, the status is 200. A post that is wrong is 422 with every fault.",
	}, func(ctx context.Context, in *submitInput) (door.Reply, error) {
		post, err := healed(in.Body)
		if err != nil {
			return door.Reply{}, err
		}
		reply, err := d.Write(ctx, in.Once, door.Write{Function: "submit_post", Args: map[string]any{"endpoint_id": in.EndpointID, "post": post}})
		if err != nil {
			return reply, ofParameter(err)
		}
		return verdictOf(reply)
	})
	door.Register(d, door.Operation{
		ID: "list-posts", Method: http.MethodGet, Path: "/posts", Summary: "Posts, the newest first", Answer: door.Listed[MessageRow]{},
		Description: "What was taken in, once per content, with the beginning of its text.",
	}, func(ctx context.Context, in *messagesInput) (door.Reply, error) { return listMessages(ctx, d, in) })
	door.Register(d, door.Operation{
		ID: "get-post", Method: http.MethodGet, Path: "/posts/{message_id}", Summary: "A post with its channels", Answer: message{},
		Description: "One post with the matrix of its channels: what became of it in each.",
	}, func(ctx context.Context, in *messageInput) (door.Reply, error) { return getMessage(ctx, d, in) })
}

// ofParameter is what is wrong with the endpoint as a caller gave it.
func ofParameter(err error) error {
	if p, ok := errors.AsType[*door.Problem](err); ok && len(p.Errors) == 1 && p.Errors[0].Field == "endpoint_id" {
		return door.Wrong("query.endpoint_id", p.Errors[0].Reason, "add ?endpoint_id= and the id of an enabled endpoint of kind webhook_push: GET /api/v1/endpoints lists them")
	}
	return err
}

// healed is a JSON value that any reader of JSON can hold: what is half a pair of code units stands as one character.
func healed(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	if err := decodeExactly(raw, &value); err != nil {
		return nil, door.Wrong("body", "is no JSON", "send a post as an object")
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil, door.Wrong("body", "is no JSON", "send a post as an object")
	}
	return out, nil
}

// verdictOf is the status of an answer about a post: what is wrong with it is a problem.
func verdictOf(reply door.Reply) (door.Reply, error) {
	var a struct {
		Status string       `json:"status"`
		Errors []door.Fault `json:"errors"`
	}
	if err := json.Unmarshal(reply.Body, &a); err != nil {
		return reply, err
	}
	switch a.Status {
	case "rejected", "invalid":
		p := door.NewProblem(http.StatusUnprocessableEntity, "The post is not as it has to be: see errors.", a.Errors...)
		p.Reason = a.Status
		return reply, p
	case "duplicate":
		reply.Status = http.StatusOK
	}
	return reply, nil
}
