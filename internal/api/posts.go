package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// post is a raw payload. docs/posts.md shows the fields of these types, too.
type post struct {
	SourceRef      string             `json:"source_ref,omitempty" minLength:"1" maxLength:"512" example:"cms-4711" doc:"Your id of the post. An endpoint accepts it once while its receipt lives (receipt_ttl_hours), by every way; a repeat is a duplicate with the first ids."`
	Text           string             `json:"text,omitempty" maxLength:"100000" example:"Hello" doc:"The text. Platforms with a shorter limit use the channel's long-text strategy (docs/texts.md)."`
	ParseMode      string             `json:"parse_mode,omitempty" enum:"HTML,Markdown,None" doc:"Markup of the text and of captions. Default: parse_mode of the channel's settings, else None."`
	Link           string             `json:"link,omitempty" example:"https://example.org/4711" doc:"An http or https URL. It becomes the last paragraph, unless the text has the same URL."`
	Links          []string           `json:"links,omitempty" nullable:"false" maxItems:"50" doc:"More links of the post, one line each after link, unless the text has them. They count for the content hash."`
	Media          []medium           `json:"media,omitempty" nullable:"false" maxItems:"50" doc:"Pictures, videos and files."`
	Tags           []string           `json:"tags,omitempty" nullable:"false" maxItems:"100" doc:"Tags for routing. Hashtags of the text are added. Case and # do not matter."`
	DisablePreview bool               `json:"disable_preview,omitempty" doc:"No link preview. Default: the channel's setting."`
	Buttons        [][]button         `json:"buttons,omitempty" nullable:"false" doc:"Rows of link buttons below the message. Platforms without buttons leave them out."`
	ScheduledFor   string             `json:"scheduled_for,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00" doc:"Earliest start, with offset. Default: at once."`
	Occurrence     string             `json:"occurrence,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00" doc:"The instant of a repeated post. It counts for the content hash, so that the same content goes out again."`
	Slot           string             `json:"slot,omitempty" enum:"next_free" doc:"next_free in place of scheduled_for: each channel gets its next free slot."`
	RemoveAt       string             `json:"remove_at,omitempty" format:"date-time" example:"2026-12-01T18:00:00+03:00" doc:"Time to delete the post again, where the platform allows it. It must be after scheduled_for."`
	Variants       map[string]variant `json:"variants,omitempty" doc:"Other content by platform or channel id. The variant of a channel wins over that of its platform."`
	Routing        *routing           `json:"routing,omitempty"`
	Template       *postTemplate      `json:"template,omitempty"`
	Thread         []threadPart       `json:"thread,omitempty" nullable:"false" maxItems:"24" doc:"Parts 2 and on of a thread. Text and media that no part names are part 1."`
	FirstComment   string             `json:"first_comment,omitempty" example:"Tickets are in the link" doc:"A reply to the first message; on YouTube a comment on the video. It is one message."`
	_              struct{}           `additionalProperties:"true"`
}

// threadPart is one of the parts 2 and on of a thread.
type threadPart struct {
	Text  string `json:"text,omitempty" example:"And there is more" doc:"The text. A part has text, media or both."`
	Media []int  `json:"media,omitempty" nullable:"false" example:"[1]" doc:"Numbers of the media of the post from 1, in the order of sending. A medium belongs to one part."`
}

type medium struct {
	Type    string `json:"type" enum:"image,video,audio,file,animation" example:"image" doc:"The use of the medium."`
	URL     string `json:"url,omitempty" example:"https://example.org/1.png" doc:"An http or https URL. It is fetched before the post is enqueued. One of url, blob_ref, file_id and attachment_token is required."`
	BlobRef string `json:"blob_ref,omitempty" pattern:"^sha256:[0-9a-f]{64}$" doc:"The blob_ref in the answer of POST /api/v1/media."`
	FileID  string `json:"file_id,omitempty" doc:"The platform's own id of a file."`
	// AttachmentToken and FileID belong to one credential.
	AttachmentToken string      `json:"attachment_token,omitempty" doc:"A token of MAX for an uploaded file."`
	AuthRef         string      `json:"auth_ref,omitempty" doc:"The credential of file_id or attachment_token. Required if the channels have several."`
	Caption         string      `json:"caption,omitempty" doc:"Caption of this item, where the platform shows one per item."`
	Alt             string      `json:"alt,omitempty" doc:"Alternative text for people who cannot see the picture."`
	Meta            *mediumMeta `json:"meta,omitempty" doc:"Facts about the file. They are not part of the content hash."`
}

type mediumMeta struct {
	Filename string  `json:"filename,omitempty" example:"price.pdf" doc:"The name of a file or sound on the platform."`
	Width    int     `json:"width,omitempty" doc:"Pixels."`
	Height   int     `json:"height,omitempty" doc:"Pixels."`
	Duration float64 `json:"duration,omitempty" doc:"Seconds."`
}

type button struct {
	Text string `json:"text" minLength:"1" maxLength:"128" example:"Open" doc:"The label."`
	URL  string `json:"url" maxLength:"2048" example:"https://example.org/4711" doc:"An http or https URL."`
}

// routing narrows the channels of one post.
type routing struct {
	IncludeChannels []string `json:"include_channels,omitempty" nullable:"false" maxItems:"10000" example:"[\"news-ru\"]" doc:"Only these channels. Their route_filter still applies."`
	ExcludeChannels []string `json:"exclude_channels,omitempty" nullable:"false" maxItems:"10000" doc:"Not these channels."`
}

// routeFilter has the conditions of a channel on the tags of posts.
type routeFilter struct {
	IncludeAny []string `json:"include_any,omitempty" nullable:"false" example:"[\"ru\"]" doc:"The post has at least one of these tags, in lower case."`
	IncludeAll []string `json:"include_all,omitempty" nullable:"false" doc:"The post has all of these tags, in lower case."`
	Exclude    []string `json:"exclude,omitempty" nullable:"false" doc:"The post has none of these tags, in lower case."`
	_          struct{} `nullable:"true"`
}

type postTemplate struct {
	Name string            `json:"name" example:"digest" doc:"The name of a template."`
	Vars map[string]string `json:"vars,omitempty" doc:"The values of its placeholders, each at most 20,000 characters."`
}

// variant is the content of a post for one platform or channel. Fields that it does not have are those of the post.
type variant struct {
	Text              string       `json:"text,omitempty" doc:"As in the post."`
	ParseMode         string       `json:"parse_mode,omitempty" enum:"HTML,Markdown,None" doc:"As in the post."`
	Link              string       `json:"link,omitempty" doc:"As in the post. An empty text means no link."`
	Media             []int        `json:"media,omitempty" nullable:"false" doc:"Indexes of the media of the post from 0, in the order of sending."`
	Buttons           [][]button   `json:"buttons,omitempty" nullable:"false" doc:"As in the post."`
	DisablePreview    bool         `json:"disable_preview,omitempty" doc:"As in the post."`
	Thread            []threadPart `json:"thread,omitempty" nullable:"true" maxItems:"24" doc:"As in the post. null or an empty list means no thread."`
	FirstComment      *string      `json:"first_comment,omitempty" nullable:"true" doc:"As in the post. null or an empty text means no comment."`
	MadeWithAI        bool         `json:"made_with_ai,omitempty" doc:"x: label of the post."`
	PaidPartnership   bool         `json:"paid_partnership,omitempty" doc:"x: label of the post."`
	ReplySettings     string       `json:"reply_settings,omitempty" enum:"everyone,following,mentionedUsers,subscribers,verified" doc:"x: who may reply."`
	Title             string       `json:"title,omitempty" maxLength:"100" doc:"youtube: the title. Default: the first line of the text."`
	Description       string       `json:"description,omitempty" doc:"youtube: the text of the variant by another name."`
	Tags              []string     `json:"tags,omitempty" nullable:"false" doc:"youtube: the tags of the video, at most 500 characters together."`
	Privacy           string       `json:"privacy,omitempty" enum:"public,unlisted,private" doc:"youtube: who may see the video. Default: public."`
	CategoryID        string       `json:"category_id,omitempty" example:"22" doc:"youtube: the number of a category, as a text."`
	Language          string       `json:"language,omitempty" example:"pt-BR" doc:"youtube: the language of title and description."`
	License           string       `json:"license,omitempty" enum:"youtube,creativeCommon" doc:"youtube: the license of the video."`
	Embeddable        bool         `json:"embeddable,omitempty" doc:"youtube: whether other sites may embed the video."`
	MadeForKids       bool         `json:"made_for_kids,omitempty" doc:"youtube: label of the video."`
	SyntheticMedia    bool         `json:"synthetic_media,omitempty" doc:"youtube: label of the video."`
	NotifySubscribers bool         `json:"notify_subscribers,omitempty" doc:"youtube: whether subscribers get a notification."`
	PlaylistID        string       `json:"playlist_id,omitempty" doc:"youtube: the playlist that gets the video. An empty text means none."`
	PublishAt         string       `json:"publish_at,omitempty" format:"date-time" example:"2026-12-01T10:00:00+03:00" doc:"youtube: the video is private until then."`
	Thumbnail         int          `json:"thumbnail,omitempty" doc:"youtube: the index of an image in the media of the post. Default: the first image."`
	Captions          []captions   `json:"captions,omitempty" nullable:"false" maxItems:"10" doc:"youtube: subtitles."`
	_                 struct{}     `additionalProperties:"true"`
}

// captions is a file with the subtitles of a video.
type captions struct {
	Media    int    `json:"media" doc:"The index of a file in the media of the post."`
	Language string `json:"language,omitempty" example:"en" doc:"The language of the subtitles."`
	Name     string `json:"name,omitempty" maxLength:"150" doc:"The name that viewers see."`
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
	ChannelID  string  `json:"channel_id" example:"news-ru"`
	DeliveryID *string `json:"delivery_id,omitempty" format:"uuid" nullable:"true"`
	Status     string  `json:"status" example:"queued"`
	Reason     *string `json:"reason,omitempty" nullable:"true"`
	// ScheduledFor is set for a post with a slot.
	ScheduledFor instant  `json:"scheduled_for,omitempty" doc:"The slot that the post took."`
	_            struct{} `additionalProperties:"true"`
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
		Status   string          `json:"status"`
		Errors   []problem.Fault `json:"errors"`
		Repeated bool            `json:"repeated"`
	}
	if err := json.Unmarshal(reply.Body, &a); err != nil {
		return reply, err
	}
	if a.Repeated {
		reply.Status = http.StatusOK
	}
	switch a.Status {
	case "rejected", "invalid":
		p := problem.WrongPost.Says("The post is invalid: see errors.").With(a.Errors...)
		p.Reason = a.Status
		return reply, p
	case "duplicate":
		reply.Status = http.StatusOK
	}
	return reply, nil
}
