package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type channel struct {
	ChannelID           string         `json:"channel_id" example:"news-ru"`
	Platform            string         `json:"platform" example:"telegram"`
	TargetID            string         `json:"target_id" example:"@news"`
	AuthRef             string         `json:"auth_ref" example:"bot" doc:"The name of the credential in use."`
	RateGroup           string         `json:"rate_group" example:"bot"`
	Enabled             bool           `json:"enabled"`
	Title               *string        `json:"title" nullable:"true"`
	SendMode            string         `json:"send_mode" example:"mixed"`
	RateRPS             *float64       `json:"rate_rps" nullable:"true" example:"1"`
	EffectiveRPS        *float64       `json:"effective_rps" nullable:"true" example:"1" doc:"The present rate: lower than rate_rps after the platform limited the channel. It rises with each sent post."`
	MaxParallel         int            `json:"max_parallel" example:"1"`
	Inflight            int            `json:"inflight"`
	PausedUntil         instant        `json:"paused_until" nullable:"true"`
	CooldownUntil       instant        `json:"cooldown_until" nullable:"true" doc:"The platform asked to wait until then."`
	Timezone            *string        `json:"timezone" nullable:"true" example:"Europe/Moscow"`
	WindowMode          string         `json:"window_mode" example:"immediate"`
	PostingWindow       map[string]any `json:"posting_window" nullable:"true"`
	DedupTTLHours       *int           `json:"dedup_ttl_hours" nullable:"true" example:"168"`
	ErrorStreak         int            `json:"error_streak"`
	OnUnknown           string         `json:"on_unknown" example:"reconcile"`
	OnAuthLost          string         `json:"on_auth_lost" example:"hold"`
	AuthHeld            bool           `json:"auth_held"`
	RightsHeld          *string        `json:"rights_held" nullable:"true" doc:"Why the bot may not post, if the channel is paused for that."`
	Moderated           bool           `json:"moderated" doc:"A person decides about its posts."`
	CredentialMissingAt instant        `json:"credential_missing_at" nullable:"true" doc:"The last claim found no secret for the credential; its posts wait since then."`
	AuthLostAt          instant        `json:"auth_lost_at" nullable:"true"`
	Settings            map[string]any `json:"settings"`
	Tags                []string       `json:"tags" nullable:"false"`
	RouteFilter         *routeFilter   `json:"route_filter"`
	TemplateRef         *string        `json:"template_ref" nullable:"true"`
	CreatedAt           time.Time      `json:"created_at"`
	UpdatedAt           time.Time      `json:"updated_at"`
	_                   struct{}       `additionalProperties:"true"`
}

type putInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body patchBody
}

func registerChannels(d *server) {
	listOf[channel](d, "channel", "channel_id", "channels", "/channels", "List channels with their wait reasons")
	rest.Register(d.Server, rest.Operation{
		ID: "put-channel", Method: http.MethodPatch, Path: "/channels/{id}", Summary: "Create or change a channel", Answer: put{},
		Change:      changeOf("channel"),
		Example:     map[string]any{"rate_rps": 0.5, "reason": "too many posts"},
		Description: "Changes only the given fields; null restores the default. Creates the channel if it does not exist. An error names the field.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutChannel(ctx, a, in.ID, fields)
		})
	})
}

// changed is the answer to a manual change of channels.
type changed struct {
	Applied  bool           `json:"applied"`
	DryRun   bool           `json:"dry_run"`
	Waiting  int            `json:"waiting,omitempty" doc:"Waiting deliveries of the channels."`
	Sending  int            `json:"sending,omitempty" doc:"Deliveries of the channels with a running call."`
	Channels []channelShift `json:"channels,omitempty" nullable:"false"`
	_        struct{}       `additionalProperties:"true"`
}

type channelShift struct {
	ChannelID string         `json:"channel_id" example:"news-ru"`
	Before    map[string]any `json:"before"`
	After     map[string]any `json:"after"`
}

type actInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body *rest.Reasoned
}

// why returns the reason in an optional body.
func why(body *rest.Reasoned) string {
	if body == nil {
		return ""
	}
	return body.Reason
}

type pauseInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body pause
}

// pause is the length of a pause.
type pause struct {
	Seconds int `json:"seconds" minimum:"1" maximum:"31536000" example:"3600"`
	rest.Reasoned
}

func (p pause) duration() time.Duration { return time.Duration(p.Seconds) * time.Second }

type rotateInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body struct {
		AuthRef   string `json:"auth_ref" minLength:"1" example:"bot-2" doc:"The name of the new credential."`
		RateGroup string `json:"rate_group,omitempty" doc:"The new rate group; unchanged by default."`
		rest.Reasoned
	}
}

var reasonExample = map[string]any{"reason": "ticket 4711"}

func registerChannelActs(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "pause-channel", Method: http.MethodPost, Path: "/channels/{id}/pause", Summary: "Pause a channel for a duration", Answer: changed{},
		Example:     map[string]any{"seconds": 3600, "reason": "quiet hour"},
		Description: "The queue waits and continues automatically after the pause. Running calls finish.",
	}, func(ctx context.Context, in *pauseInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PauseChannel(ctx, a, in.ID, in.Body.duration())
		})
	})
	for _, same := range []struct{ id, verb, summary string }{
		{"resume-channel", "resume", "End the pause of a channel"}, {"enable-channel", "enable", "Enable a channel"},
	} {
		rest.Register(d.Server, rest.Operation{
			ID: same.id, Method: http.MethodPost, Path: "/channels/{id}/" + same.verb, Summary: same.summary, Answer: changed{}, Example: reasonExample,
			Description: "Enables the channel, ends its pause and resets its error streak. Waiting deliveries continue at once. A wait that the platform asked for stays.",
		}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
			return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
				return d.db.ResumeChannel(ctx, a, in.ID)
			})
		})
	}
	rest.Register(d.Server, rest.Operation{
		ID: "disable-channel", Method: http.MethodPost, Path: "/channels/{id}/disable", Summary: "Disable a channel", Answer: put{}, Example: reasonExample,
		Description: "Until it is enabled, no post is routed to it and no call starts. Waiting deliveries stay.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		if _, err := d.One(ctx, "This workspace has no such channel.", rest.Query{Function: "list_configuration", Kind: "channel", Filter: map[string]any{"id": in.ID}}); err != nil {
			return rest.Reply{}, err
		}
		c := rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}
		return d.Do(ctx, in.AuditedWrite, c, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PutChannel(ctx, a, in.ID, map[string]bool{"enabled": false})
		})
	})
	removeOf(d, "channel", "/channels", "Remove a disabled channel that never had a delivery",
		"Only a channel without deliveries and quotas can be removed. Disable any other one.", Store.RemoveChannel)
	rest.Register(d.Server, rest.Operation{
		ID: "rotate-channel-auth", Method: http.MethodPost, Path: "/channels/{id}/rotate-auth", Summary: "Replace the credential of a channel", Answer: put{},
		Example:     map[string]any{"auth_ref": "bot-2", "reason": "the token leaked"},
		Description: "Requires that no call of the channel is running. Otherwise the channel pauses for two minutes and the answer is 409: repeat the request.",
	}, func(ctx context.Context, in *rotateInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RotateAuth(ctx, a, in.ID, in.Body.AuthRef, in.Body.RateGroup)
		})
	})
}
