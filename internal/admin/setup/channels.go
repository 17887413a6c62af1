package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type channel struct {
	ChannelID     string         `json:"channel_id" example:"news-ru"`
	Platform      string         `json:"platform" example:"telegram"`
	TargetID      string         `json:"target_id" example:"@news"`
	AuthRef       string         `json:"auth_ref" example:"bot" doc:"The credential in use, by its name."`
	RateGroup     string         `json:"rate_group" example:"bot"`
	Enabled       bool           `json:"enabled"`
	Title         *string        `json:"title" nullable:"true"`
	SendMode      string         `json:"send_mode" example:"mixed"`
	RateRPS       *float64       `json:"rate_rps" nullable:"true" example:"1"`
	MaxParallel   int            `json:"max_parallel" example:"1"`
	Inflight      int            `json:"inflight"`
	PausedUntil   instant        `json:"paused_until" nullable:"true"`
	CooldownUntil instant        `json:"cooldown_until" nullable:"true" doc:"The platform asked to wait."`
	Timezone      *string        `json:"timezone" nullable:"true" example:"Europe/Moscow"`
	WindowMode    string         `json:"window_mode" example:"immediate"`
	PostingWindow map[string]any `json:"posting_window" nullable:"true"`
	DedupTTLHours *int           `json:"dedup_ttl_hours" nullable:"true" example:"168"`
	ErrorStreak   int            `json:"error_streak"`
	OnUnknown     string         `json:"on_unknown" example:"reconcile"`
	OnAuthLost    string         `json:"on_auth_lost" example:"hold"`
	AuthHeld      bool           `json:"auth_held"`
	RightsHeld    *string        `json:"rights_held" nullable:"true" doc:"Why its bot may not post, where it is paused because of that."`
	AuthLostAt    instant        `json:"auth_lost_at" nullable:"true"`
	Settings      map[string]any `json:"settings"`
	Tags          []string       `json:"tags" nullable:"false"`
	RouteFilter   map[string]any `json:"route_filter" nullable:"true"`
	TemplateRef   *string        `json:"template_ref" nullable:"true"`
	CreatedAt     time.Time      `json:"created_at"`
	UpdatedAt     time.Time      `json:"updated_at"`
	_             struct{}       `additionalProperties:"true"`
}

type putInput struct {
	door.Act
	door.Dry
	IDPath
	Body patchBody
}

func registerChannels(d *door.Door) {
	listOf[channel](d, "channel", "channel_id", "channels", "/channels", "Channels with what holds them")
	door.Register(d, door.Operation{
		ID: "put-channel", Method: http.MethodPatch, Path: "/channels/{id}", Summary: "Make or change a channel", Answer: put{},
		Example:     map[string]any{"rate_rps": 0.5, "reason": "the group complains"},
		Description: "Changes only what the body names, null for the default; makes the channel where there is none. What is wrong is refused by field.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_channel", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}

// changed is what an act did to channels, or would.
type changed struct {
	Applied  bool           `json:"applied"`
	DryRun   bool           `json:"dry_run"`
	Waiting  int            `json:"waiting,omitempty" doc:"Deliveries of the channels that wait."`
	Sending  int            `json:"sending,omitempty" doc:"And that are being sent."`
	Channels []channelShift `json:"channels,omitempty" nullable:"false"`
	_        struct{}       `additionalProperties:"true"`
}

type channelShift struct {
	ChannelID string         `json:"channel_id" example:"news-ru"`
	Before    map[string]any `json:"before"`
	After     map[string]any `json:"after"`
}

type actInput struct {
	door.Act
	door.Dry
	IDPath
	Body *door.Reasoned
}

// why is the reason of a body that may be missing.
func why(body *door.Reasoned) string {
	if body == nil {
		return ""
	}
	return body.Reason
}

type pauseInput struct {
	door.Act
	door.Dry
	IDPath
	Body struct {
		Seconds int `json:"seconds" minimum:"1" maximum:"31536000" example:"3600"`
		door.Reasoned
	}
}

type rotateInput struct {
	door.Act
	door.Dry
	IDPath
	Body struct {
		AuthRef   string `json:"auth_ref" minLength:"1" example:"bot-2" doc:"The new credential, by its name."`
		RateGroup string `json:"rate_group,omitempty" doc:"Another rate group; without it the channel stays in its own."`
		door.Reasoned
	}
}

var reasonExample = map[string]any{"reason": "ticket 4711"}

func registerChannelActs(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "pause-channel", Method: http.MethodPost, Path: "/channels/{id}/pause", Summary: "Begin no call of a channel for a time", Answer: changed{},
		Example:     map[string]any{"seconds": 3600, "reason": "the moderators ask for quiet"},
		Description: "Its queue waits, and goes on by itself afterwards; what is being sent ends as it will.",
	}, func(ctx context.Context, in *pauseInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "pause_channel", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"channel_id": in.ID, "seconds": in.Body.Seconds}})
	})
	for _, same := range []struct{ id, verb, summary string }{
		{"resume-channel", "resume", "End a channel's pause"}, {"enable-channel", "enable", "Enable a channel"},
	} {
		door.Register(d, door.Operation{
			ID: same.id, Method: http.MethodPost, Path: "/channels/{id}/" + same.verb, Summary: same.summary, Answer: changed{}, Example: reasonExample,
			Description: "The channel is enabled, its pause and its failures are over, and what waits goes at once. A wait that the platform asked for stays.",
		}, func(ctx context.Context, in *actInput) (door.Reply, error) {
			return d.Do(ctx, in.Act, door.Write{Function: "resume_channel", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"channel_id": in.ID}})
		})
	}
	door.Register(d, door.Operation{
		ID: "disable-channel", Method: http.MethodPost, Path: "/channels/{id}/disable", Summary: "Disable a channel", Answer: put{}, Example: reasonExample,
		Description: "Nothing is routed to it and no call begins until it is enabled; what waits stays.",
	}, func(ctx context.Context, in *actInput) (door.Reply, error) {
		w := door.Write{Function: "put_channel", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}
		if _, err := d.One(ctx, "list_configuration", "channel", "This workspace has no such channel.", map[string]any{"id": in.ID}); err != nil {
			return door.Reply{}, err
		}
		return patch(ctx, d, in.Act, w, patchBody{"enabled": false})
	})
	door.Register(d, door.Operation{
		ID: "rotate-channel-auth", Method: http.MethodPost, Path: "/channels/{id}/rotate-auth", Summary: "Give a channel another credential", Answer: put{},
		Example:     map[string]any{"auth_ref": "bot-2", "reason": "the token leaked"},
		Description: "Only while nothing of it is being sent; else the channel pauses for two minutes and the answer is 409, so that the same request succeeds soon.",
	}, func(ctx context.Context, in *rotateInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "rotate_auth", Reason: in.Body.Reason, DryRun: in.DryRun,
			Args: map[string]any{"channel_id": in.ID, "auth_ref": in.Body.AuthRef, "rate_group": in.Body.RateGroup}})
	})
}
