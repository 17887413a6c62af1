package setup

import (
	"context"
	"net/http"

	"autopost/internal/admin/door"
)

type group struct {
	GroupID         string   `json:"group_id" example:"telegram/bot" doc:"platform/rate_group."`
	Platform        string   `json:"platform" example:"telegram"`
	RateGroup       string   `json:"rate_group" example:"bot"`
	RateRPS         *float64 `json:"rate_rps" nullable:"true" example:"25" doc:"Of all its channels together; null: no limit."`
	CooldownUntil   instant  `json:"cooldown_until" nullable:"true" doc:"The platform asked to wait."`
	QuotaUntil      instant  `json:"quota_until" nullable:"true" doc:"Its quota is used up until then."`
	BreakerOpenedAt instant  `json:"breaker_opened_at" nullable:"true" doc:"The platform is taken to be down since then."`
	Channels        int      `json:"channels" example:"3"`
	Enabled         int      `json:"enabled" example:"3" doc:"Of these."`
}

// GroupPath names a rate group.
type GroupPath struct {
	Platform  string `path:"platform" maxLength:"200" example:"telegram"`
	RateGroup string `path:"rate_group" maxLength:"200" example:"bot"`
}

func (p GroupPath) id() string { return p.Platform + "/" + p.RateGroup }

type groupActInput struct {
	door.Act
	door.Dry
	GroupPath
	Body *door.Reasoned
}

type groupPutInput struct {
	door.Act
	door.Dry
	GroupPath
	Body patchBody
}

func registerGroups(d *door.Door) {
	list := door.List{Function: "list_configuration", Kind: "group", Key: door.ByName("group_id")}
	door.Register(d, door.Operation{
		ID: "list-groups", Method: http.MethodGet, Path: "/groups", Summary: "Rate groups with what holds them", Answer: door.Listed[group]{},
		Description: "Each group that has a limit or a channel, by platform and name.",
	}, func(ctx context.Context, in *struct{ door.Page }) (door.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
	door.Register(d, door.Operation{
		ID: "get-group", Method: http.MethodGet, Path: "/groups/{platform}/{rate_group}", Summary: "One rate group", Answer: group{}, Description: "With what holds it.",
	}, func(ctx context.Context, in *GroupPath) (door.Reply, error) {
		return d.One(ctx, list.Function, list.Kind, "This workspace has no such group.", map[string]any{"id": in.id()})
	})
	door.Register(d, door.Operation{
		ID: "put-group", Method: http.MethodPatch, Path: "/groups/{platform}/{rate_group}", Summary: "Limit a rate group", Answer: put{},
		Example:     map[string]any{"rate_rps": 20, "reason": "the platform is strict today"},
		Description: "Changes only what the body names, null for the default; makes the limit where there is none.",
	}, func(ctx context.Context, in *groupPutInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_rate_group", DryRun: in.DryRun, Args: map[string]any{"platform": in.Platform, "rate_group": in.RateGroup}}, in.Body)
	})
	for _, act := range []struct{ id, verb, function, summary, description string }{
		{"disable-group", "disable", "disable_group", "Disable all channels of a group", "Nothing is routed to them and no call begins; what waits stays."},
		{"enable-group", "enable", "enable_group", "Enable all channels of a group", "As if each were resumed: what waits goes at once."},
	} {
		door.Register(d, door.Operation{
			ID: act.id, Method: http.MethodPost, Path: "/groups/{platform}/{rate_group}/" + act.verb, Summary: act.summary, Answer: changed{}, Example: reasonExample,
			Description: act.description,
		}, func(ctx context.Context, in *groupActInput) (door.Reply, error) {
			return d.Do(ctx, in.Act, door.Write{Function: act.function, Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"platform": in.Platform, "rate_group": in.RateGroup}})
		})
	}
}
