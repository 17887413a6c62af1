package api

import (
	"context"
	"net/http"

	"autopost/internal/api/rest"
)

type group struct {
	GroupID         string   `json:"group_id" example:"telegram/bot" doc:"platform/rate_group."`
	Platform        string   `json:"platform" example:"telegram"`
	RateGroup       string   `json:"rate_group" example:"bot"`
	RateRPS         *float64 `json:"rate_rps" nullable:"true" example:"25" doc:"Messages per second of all its channels together; null means no limit."`
	PlatformRPS     *float64 `json:"platform_rps" nullable:"true" example:"25" doc:"The default on this platform; null if the platform publishes none."`
	CooldownUntil   instant  `json:"cooldown_until" nullable:"true" doc:"The platform asked to wait until then."`
	QuotaUntil      instant  `json:"quota_until" nullable:"true" doc:"The quota is used up until then."`
	BreakerOpenedAt instant  `json:"breaker_opened_at" nullable:"true" doc:"The circuit breaker is open since then."`
	Channels        int      `json:"channels" example:"3"`
	Enabled         int      `json:"enabled" example:"3" doc:"How many of them are enabled."`
	Paused          int      `json:"paused" example:"0" doc:"How many of those are paused."`
}

// GroupPath is the rate group in a path.
type GroupPath struct {
	Platform  string `path:"platform" maxLength:"200" example:"telegram"`
	RateGroup string `path:"rate_group" maxLength:"200" example:"bot"`
}

func (p GroupPath) id() string { return p.Platform + "/" + p.RateGroup }

type groupActInput struct {
	rest.AuditedWrite
	rest.Dry
	GroupPath
	Body *rest.Reasoned
}

type groupPauseInput struct {
	rest.AuditedWrite
	rest.Dry
	GroupPath
	Body pause
}

type groupPutInput struct {
	rest.AuditedWrite
	rest.Dry
	GroupPath
	Body patchBody
}

func registerGroups(d *server) {
	list := rest.List{Function: "list_configuration", Kind: "group", Key: rest.ByName("group_id")}
	rest.Register(d.Server, rest.Operation{
		ID: "list-groups", Method: http.MethodGet, Path: "/groups", Summary: "List rate groups with their wait reasons", Answer: rest.Listed[group]{},
		Description: "All groups with a limit or a channel, by platform and name.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-group", Method: http.MethodGet, Path: "/groups/{platform}/{rate_group}", Summary: "Get a rate group", Answer: group{}, Description: "One rate group with its wait reasons.",
	}, func(ctx context.Context, in *GroupPath) (rest.Reply, error) {
		return d.One(ctx, "This workspace has no such group.", rest.Query{Function: list.Function, Kind: list.Kind, Filter: map[string]any{"id": in.id()}})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-group", Method: http.MethodPatch, Path: "/groups/{platform}/{rate_group}", Summary: "Limit a rate group", Answer: put{},
		Change:      changeOf("group"),
		Example:     map[string]any{"rate_rps": 20, "reason": "the platform lowered its limit"},
		Description: "Changes only the given fields; null restores the default. Creates the limit if it does not exist.",
	}, func(ctx context.Context, in *groupPutInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.id()}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutRateGroup(ctx, a, in.Platform, in.RateGroup, fields)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "pause-group", Method: http.MethodPost, Path: "/groups/{platform}/{rate_group}/pause", Summary: "Pause all channels of a group for a duration", Answer: changed{},
		Example:     map[string]any{"seconds": 3600, "reason": "an incident at the platform"},
		Description: "Their queues wait and continue automatically after the pause. Running calls finish. It replaces earlier pauses.",
	}, func(ctx context.Context, in *groupPauseInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.id()}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PauseGroup(ctx, a, in.Platform, in.RateGroup, in.Body.duration())
		})
	})
	for _, act := range []struct {
		id, verb, summary, description string
		do                             func(Store, context.Context, rest.OperatorAction, string, string) (rest.Written, error)
	}{
		{"disable-group", "disable", "Disable all channels of a group", "No post is routed to them and no call starts. Waiting deliveries stay.", Store.DisableGroup},
		{"enable-group", "enable", "Enable all channels of a group", "Resumes each channel. Waiting deliveries continue at once.", Store.EnableGroup},
	} {
		rest.Register(d.Server, rest.Operation{
			ID: act.id, Method: http.MethodPost, Path: "/groups/{platform}/{rate_group}/" + act.verb, Summary: act.summary, Answer: changed{}, Example: reasonExample,
			Description: act.description,
		}, func(ctx context.Context, in *groupActInput) (rest.Reply, error) {
			return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.id()}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
				return act.do(d.db, ctx, a, in.Platform, in.RateGroup)
			})
		})
	}
}
