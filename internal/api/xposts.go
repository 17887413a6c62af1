package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// xPost is an event of Global X. Its fields have the names of the founding document.
type xPost struct {
	ID              string         `json:"_id" format:"uuid" doc:"The id of its submission."`
	EventType       string         `json:"eventType" example:"image" doc:"image, video, combat, or the name of an own event type."`
	Status          string         `json:"status" enum:"pending,approved,posted,failed,skipped,rejected,expired" example:"posted"`
	MediaType       string         `json:"mediaType" enum:"image,video,none" example:"image" doc:"The kind of its medium."`
	MediaURL        *string        `json:"mediaUrl" nullable:"true" doc:"The URL of the medium in the event."`
	AvatarIDs       []string       `json:"avatarIds" nullable:"false" doc:"The avatars of the event."`
	EncounterID     *string        `json:"encounterId" nullable:"true" doc:"The encounter of a combat."`
	TemplateKey     string         `json:"templateKey" example:"image" doc:"The template of the text."`
	ResolvedContent string         `json:"resolvedContent" example:"Nyx: a ranger" doc:"The text of the post."`
	Hash            string         `json:"hash" doc:"SHA-256 of the URL of the medium, else of the payload. It makes duplicates."`
	Attempts        int            `json:"attempts" doc:"Calls, or downloads of the medium before them."`
	NextAttemptAt   instant        `json:"nextAttemptAt" nullable:"true" doc:"The earliest time of the next attempt."`
	LastError       *string        `json:"lastError" nullable:"true" doc:"The last failure; of a skipped event duplicate, disabled or shadow_mode."`
	TweetID         *string        `json:"tweetId" nullable:"true" doc:"The id of the post on X."`
	TweetURL        *string        `json:"tweetUrl" nullable:"true" doc:"The address of the post on X."`
	Meta            map[string]any `json:"meta" doc:"prompt, summaryText, rounds, title, and truncated: whether the text was cut."`
	CreatedAt       time.Time      `json:"createdAt" doc:"When the event was received."`
	UpdatedAt       time.Time      `json:"updatedAt" doc:"The last change of its state."`
	PostedAt        instant        `json:"postedAt" nullable:"true" doc:"When X had the post."`
	RejectedReason  *string        `json:"rejectedReason" nullable:"true" doc:"The note of a rejection."`
	DuplicateOf     *string        `json:"duplicateOf" nullable:"true" doc:"The event with the same hash."`
	Digest          *string        `json:"digest" nullable:"true" doc:"Identifies what a decision is about."`
	Backfill        bool           `json:"backfill" doc:"It was posted before autopost recorded it."`
}

// xPostConfig is the configuration of Global X, as stored and as it acts.
type xPostConfig struct {
	Stored    map[string]any `json:"stored" doc:"What was set, with _id and updatedAt."`
	Effective map[string]any `json:"effective" doc:"What acts: the stored values over the defaults, under the settings of GLOBAL_X_*."`
}

// xPostChange is the documented body of a change of the configuration.
type xPostChange struct {
	Enabled      *bool  `json:"enabled,omitempty" doc:"false skips all new events."`
	EnableImages *bool  `json:"enableImages,omitempty" doc:"false skips new events of type image."`
	EnableVideos *bool  `json:"enableVideos,omitempty" doc:"false skips new events of type video."`
	EnableCombat *bool  `json:"enableCombat,omitempty" doc:"false skips new events of type combat."`
	Mode         string `json:"mode,omitempty" enum:"live,hold,shadow" doc:"hold starts no call of the channel; shadow only shows what would be posted."`
	ChannelID    string `json:"channel_id,omitempty" doc:"The X channel. Without it the avatar of GLOBAL_X_ACCOUNT_AVATAR_ID decides."`
	Moderation   struct {
		Enabled *bool `json:"enabled,omitempty" doc:"Whether events wait for a decision."`
	} `json:"moderation,omitempty" doc:"Decisions by people."`
	Rate struct {
		PerHour *int `json:"perHour,omitempty" minimum:"1" doc:"The most posts per hour."`
		PerDay  *int `json:"perDay,omitempty" minimum:"1" doc:"The most posts per day."`
	} `json:"rate,omitempty" doc:"Caps of the channel."`
	Templates map[string]string `json:"templates,omitempty" doc:"Bodies of the templates image, video and combat."`
	rest.Reasoned
}

// xPostPut is the answer to a change of the configuration.
type xPostPut struct {
	Applied bool           `json:"applied"`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged" doc:"unchanged if nothing was to be done."`
	Before  map[string]any `json:"before,omitempty"`
	After   map[string]any `json:"after,omitempty"`
	// Stored and Effective are those of xPostConfig.
	Stored    map[string]any `json:"stored" doc:"What was set, with _id and updatedAt."`
	Effective map[string]any `json:"effective" doc:"What acts now."`
}

type xPostStats struct {
	Since             time.Time                 `json:"since" doc:"The start of the counted time."`
	Counts            map[string]int            `json:"counts" doc:"Events by status."`
	ByType            map[string]map[string]int `json:"byType" doc:"Events by type and status."`
	SuccessRate       *float64                  `json:"successRate" nullable:"true" doc:"Posted events of the posted and failed ones."`
	QueueDepth        int                       `json:"queueDepth" doc:"Approved events that are not posted yet."`
	PendingModeration int                       `json:"pendingModeration" doc:"Events that wait for a decision."`
	LatencySeconds    struct {
		P50 *float64 `json:"p50" nullable:"true" doc:"The median."`
		P95 *float64 `json:"p95" nullable:"true" doc:"95 of 100 are faster."`
	} `json:"latencySeconds" doc:"From the receipt to the post."`
}

// xPostPreview is the text of an event.
type xPostPreview struct {
	Status    string `json:"status" example:"ok"`
	Text      string `json:"text" example:"Nyx: a ranger"`
	Truncated bool   `json:"truncated" doc:"Whether the text was cut to the limit."`
	Length    int    `json:"length" doc:"The length as X counts it."`
	Limit     int    `json:"limit" example:"260" doc:"The longest text."`
}

type xPostsInput struct {
	rest.Page
	Status string `query:"status" enum:"pending,approved,posted,failed,skipped,rejected,expired" doc:"Only this status."`
	Type   string `query:"type" maxLength:"100" doc:"Only this eventType."`
}

type xPostInput struct {
	rest.AuditedWrite
	IDPath
	Body *struct {
		Digest string `json:"digest,omitempty" pattern:"^[0-9a-f]{64}$" doc:"The digest that the person saw. A changed plan is refused."`
		rest.Reasoned
	}
}

type xPostConfigInput struct {
	rest.AuditedWrite
	rest.Dry
	Body patchBody
}

type xPostPreviewInput struct {
	Body struct {
		Type     string         `json:"type" enum:"image,video,combat" example:"image"`
		Template *string        `json:"template,omitempty" example:"{avatar_name} emerges: {prompt}" doc:"A draft; without it the present template."`
		Context  map[string]any `json:"context" doc:"The values of the placeholders."`
	}
}

const adminRoot = "/api/admin"

var xPosts = rest.List{Function: "list_x_posts", Key: rest.ByID("_id")}

func registerXPosts(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-x-posts", Method: http.MethodGet, Root: adminRoot, Path: "/x-posts", Summary: "List events of Global X, newest first", Answer: rest.Listed[xPost]{},
		Description: "Domain events and their posts.",
	}, func(ctx context.Context, in *xPostsInput) (rest.Reply, error) {
		return d.Read(ctx, xPosts, in.Page, map[string]any{"status": in.Status, "type": in.Type})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-x-post-config", Method: http.MethodGet, Root: adminRoot, Path: "/x-posts/config", Summary: "Get the configuration of Global X", Answer: xPostConfig{},
		Description: "The stored and the effective configuration.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", d.db.GetXPostConfig)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-x-post-config", Method: http.MethodPut, Root: adminRoot, Path: "/x-posts/config", Summary: "Change the configuration of Global X", Answer: xPostPut{}, Body: xPostChange{},
		Example:     map[string]any{"enableImages": true, "rate": map[string]any{"perHour": 6, "perDay": 25}, "templates": map[string]any{"image": "{avatar_name} emerges: {prompt}"}},
		Description: "Changes only the given fields; null restores a default. A reason is optional.",
	}, func(ctx context.Context, in *xPostConfigInput) (rest.Reply, error) {
		in.HeaderReason = cmp.Or(in.HeaderReason, "configuration of Global X")
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun}, in.Body, d.db.PutXPostConfig)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "preview-x-post", Method: http.MethodPost, Root: adminRoot, Path: "/x-posts/preview", Summary: "Preview the text of an event", Answer: xPostPreview{},
		Example:     map[string]any{"type": "image", "context": map[string]any{"avatar_name": "Nyx", "prompt": "a ranger"}},
		Description: "The text that an event with these values would have. It changes nothing.",
	}, func(ctx context.Context, in *xPostPreviewInput) (rest.Reply, error) {
		return d.previewXPost(ctx, in)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-x-post-stats", Method: http.MethodGet, Root: adminRoot, Path: "/x-posts/stats", Summary: "Get Global X in numbers", Answer: xPostStats{},
		Description: "The events of the last seven days.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", d.db.XPostStats)
	})
	for act, what := range map[string]string{"approve": "Approve", "reject": "Reject", "retry": "Retry"} {
		answer := any(decided{})
		if act == "retry" {
			answer = put{}
		}
		rest.Register(d.Server, rest.Operation{
			ID: act + "-x-post", Method: http.MethodPost, Root: adminRoot, Path: "/x-posts/{id}/" + act, Summary: what + " an event of Global X", Answer: answer, Example: reasonExample,
			Description: "The first decision wins: a later one is 409 and names it. A retry is for failed, skipped and expired events.",
		}, func(ctx context.Context, in *xPostInput) (rest.Reply, error) { return d.actOnXPost(ctx, act, in) })
	}
}

func (d *server) previewXPost(ctx context.Context, in *xPostPreviewInput) (rest.Reply, error) {
	values, err := json.Marshal(in.Body.Context)
	if err != nil {
		return rest.Reply{}, err
	}
	reply, err := d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
		return d.db.PreviewXPost(ctx, workspace, in.Body.Type, in.Body.Template, values)
	})
	if err != nil {
		return reply, err
	}
	return reply, invalidOf(reply.Body)
}

// invalidOf returns the problem of an answer with errors.
func invalidOf(answer json.RawMessage) error {
	var a struct{ Errors []problem.Fault }
	if err := json.Unmarshal(answer, &a); err != nil || len(a.Errors) == 0 {
		return err
	}
	return problem.WrongRequest.Says("%s %s; %s.", a.Errors[0].Field, a.Errors[0].Reason, a.Errors[0].Remedy).With(a.Errors...)
}

// actOnXPost decides about an event or retries it.
func (d *server) actOnXPost(ctx context.Context, act string, in *xPostInput) (rest.Reply, error) {
	const unknown = "This workspace has no such event. GET /api/admin/x-posts lists all."
	if uuid.Validate(in.ID) != nil || len(in.ID) != 36 {
		return rest.Reply{}, rest.NotFound(unknown)
	}
	if _, err := d.One(ctx, unknown, rest.Query{Function: xPosts.Function, Filter: map[string]any{"id": strings.ToLower(in.ID)}}); err != nil {
		return rest.Reply{}, err
	}
	approval := map[string]any{"source": rest.Caller(ctx).Source(), "digest": nil}
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
		if in.Body.Digest != "" {
			approval["digest"] = in.Body.Digest
		}
	}
	if act != "reject" {
		reason = cmp.Or(reason, in.HeaderReason, act+" of an event of Global X")
	}
	return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: reason, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		if act == "retry" {
			return d.db.RetrySubmission(ctx, a, in.ID)
		}
		return d.db.DecideSubmission(ctx, a, in.ID, act, approval)
	})
}
