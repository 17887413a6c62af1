package web

import (
	"net/http"
	"strings"
	"time"

	"autopost/internal/configfile"
)

// resources are the kinds of configuration whose pages are made from their rules. Channels have a list of their own.
var resources = []*resource{
	channelResource, groupResource, quotaResource, budgetResource, retryResource, sourceResource, endpointResource, webhookResource, alertTargetResource,
	moderationResource, eventTypeResource, avatarResource,
}

// SetupRoutes registers the pages of the set-up.
func (s *server) setupRoutes(mux *http.ServeMux) {
	for _, o := range resources {
		s.rowRoutes(mux, o)
	}
	mux.HandleFunc("GET /setup/limits", s.signed(s.limits))
	mux.HandleFunc("GET /setup/settings", s.signed(s.settings))
	mux.HandleFunc("POST /setup/settings", s.signed(s.setSetting))
	mux.HandleFunc("GET /setup/config", s.signed(s.config))
	mux.HandleFunc("POST /setup/config", s.signed(s.applyConfig))
	mux.HandleFunc("GET /setup/config/export", s.signed(s.exportConfig))
	mux.HandleFunc("GET /setup/templates", s.signed(s.templates))
	mux.HandleFunc("GET /setup/templates/{id}", s.signed(s.template))
	mux.HandleFunc("POST /setup/templates", s.signed(s.putTemplate))
	mux.HandleFunc("POST /setup/templates/{id}/{act}", s.signed(s.actOnTemplate))
}

// at returns an instant of a row; nil if it has none.
func (r row) at(name string) *time.Time {
	at, err := time.Parse(time.RFC3339Nano, r.text(name))
	if err != nil {
		return nil
	}
	return &at
}

// when is an instant of a row in words, after a word; "" if it has none.
func (v *view) when(word string, at *time.Time) string {
	if at == nil {
		return ""
	}
	text := v.t(word) + " " + v.instant(*at)
	if near := v.relative(*at); near != "" {
		text += ", " + near
	}
	return text
}

// later reports whether an instant of a row is in the future.
func (r row) later(name string, now time.Time) bool {
	at := r.at(name)
	return at != nil && at.After(now)
}

func joined(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, " · ")
}

// lastError is the error of a row in words of the API.
func (r row) lastError() string {
	e := r.object("last_error")
	if e == nil {
		return ""
	}
	return joined(row(e).text("code"), row(e).text("message"))
}

// switched is the act that enables or disables a row.
func switched(r row) string {
	if r.is("enabled") {
		return "disable"
	}
	return "enable"
}

func ownerSwitch(v *view, r row) []string {
	if !v.may("owner") {
		return nil
	}
	return []string{switched(r), "remove"}
}

// healthOf is the state of a row that is used by a daemon: failing if its last use failed.
func healthOf(r row) string {
	switch {
	case !r.is("enabled"):
		return "disabled"
	case r.number("failures") > 0:
		return "failing"
	}
	return "open"
}

var groupResource = &resource{
	section: "/setup/groups", path: "/groups", id: "group_id", kind: configfile.KindOf("group"), home: "/setup/limits", noAdd: true,
	state: func(v *view, r row) string {
		switch {
		case r["breaker_opened_at"] != nil:
			return "failing"
		case r.number("channels") > 0 && r.number("enabled") == 0:
			return "disabled"
		case r.number("paused") > 0:
			return "paused"
		case r.later("cooldown_until", v.now), r.later("quota_until", v.now):
			return "cooldown"
		}
		return "open"
	},
	sub: func(v *view, r row) string {
		return joined(v.n("groups.channels", r.number("channels")), v.t("groups.paused", r.number("paused"), r.number("enabled")))
	},
	why: func(v *view, r row) string {
		rate := v.t("groups.no_rate")
		if r["rate_rps"] != nil {
			rate = v.t("groups.rate", r.text("rate_rps"))
		}
		return joined(rate, v.when("groups.breaker", r.at("breaker_opened_at")), v.when("groups.cooldown", r.at("cooldown_until")), v.when("groups.quota", r.at("quota_until")))
	},
	acts: func(v *view, r row) []string {
		if !v.may("operator") || r.number("channels") == 0 {
			return nil
		}
		if r.number("enabled") == 0 {
			return []string{"enable"}
		}
		if r.number("paused") > 0 {
			return []string{"enable", "pause", "disable"}
		}
		return []string{"pause", "disable"}
	},
}

var quotaResource = &resource{
	section: "/setup/quotas", path: "/quotas", id: "quota_id", kind: configfile.KindOf("quota"), home: "/setup/limits",
	state: func(v *view, r row) string {
		if r.later("free_at", v.now) {
			return "cooldown"
		}
		return "open"
	},
	sub: func(v *view, r row) string {
		return v.t("quotas.window", r.number("used"), r.number("max_sends"), v.seconds(r.number("window_seconds")))
	},
	why: func(v *view, r row) string {
		if r.later("free_at", v.now) {
			return v.when("quotas.free", r.at("free_at"))
		}
		return ""
	},
	acts: func(v *view, _ row) []string {
		if !v.may("operator") {
			return nil
		}
		return []string{"lift"}
	},
}

// seconds is a length of time in words.
func (v *view) seconds(n int) string {
	switch {
	case n >= 86400 && n%86400 == 0:
		return v.n("time.days", n/86400)
	case n >= 3600 && n%3600 == 0:
		return v.n("time.hours", n/3600)
	case n >= 60 && n%60 == 0:
		return v.n("time.minutes", n/60)
	}
	return v.n("time.seconds", n)
}

var budgetResource = &resource{
	section: "/setup/budgets", path: "/budgets", id: "auth_ref", kind: configfile.KindOf("budget"), home: "/setup/limits", changes: "owner",
	state: func(_ *view, r row) string {
		spent, _ := r["spent_usd"].(float64)
		if most, ok := r["month_usd"].(float64); ok && spent >= most {
			return "held"
		}
		return "open"
	},
	sub: func(v *view, r row) string { return v.t("budgets.spent", r.text("spent_usd"), r.text("month_usd")) },
	why: func(v *view, r row) string { return v.when("budgets.ends", r.at("ends_at")) },
}

var retryResource = &resource{
	section: "/setup/retry-policies", path: "/retry-policies", id: "retry_policy_id", kind: configfile.KindOf("retry_policy"),
	state: func(*view, row) string { return "open" },
	sub: func(v *view, r row) string {
		if r.is("own") {
			return v.t("retry-policies.own")
		}
		return v.t("retry-policies.inherited")
	},
	why: func(v *view, r row) string {
		calls := v.t("retry-policies.default_calls")
		if r["max_attempts"] != nil {
			calls = v.n("retry-policies.calls", r.number("max_attempts"))
		}
		if r.text("kind") == "ladder" {
			return joined(v.t("value.ladder")+": "+strings.Trim(r.text("ladder_ms"), "[]")+" ms", calls)
		}
		return joined(v.t("retry-policies.exponential", r.text("base_ms"), r.text("cap_ms")), calls)
	},
}

var webhookResource = &resource{
	section: "/setup/webhooks", path: "/webhooks", id: "webhook_id", kind: configfile.KindOf("webhook"), changes: "owner",
	first: []string{"url", "signing_ref", "event_types"},
	state: func(_ *view, r row) string {
		switch {
		case r["disabled_reason"] != nil, r.is("enabled") && r["failing_since"] != nil:
			return "failing"
		}
		return healthOf(r)
	},
	sub: func(_ *view, r row) string { return r.text("url") },
	why: func(v *view, r row) string {
		if reason := r.text("disabled_reason"); reason != "" {
			return v.t("webhooks.stopped." + reason)
		}
		return v.when("webhooks.failing", r.at("failing_since"))
	},
	acts: func(v *view, r row) []string {
		var all []string
		if v.may("operator") {
			all = append(all, "test", "replay")
		}
		return append(all, ownerSwitch(v, r)...)
	},
	read: func(v *view, d *rowData) error {
		if d.Row == nil {
			return nil
		}
		var sends page[webhookSend]
		err := v.get("/webhooks/"+pathOf(d.ID)+"/deliveries?limit=20", &sends)
		d.Extra = sends.Items
		return err
	},
	extra: webhookSends,
}

// webhookSend is a request to a result webhook.
type webhookSend struct {
	ID         string    `json:"id"`
	TS         time.Time `json:"ts"`
	Type       string    `json:"type"`
	Status     string    `json:"status"`
	Attempt    int       `json:"attempt"`
	HTTPStatus *int      `json:"http_status"`
	Error      *string   `json:"error"`
}

var alertTargetResource = &resource{
	section: "/setup/alert-targets", path: "/alert-targets", id: "target_id", kind: configfile.KindOf("alert_target"), changes: "owner",
	first: []string{"kind", "address", "auth_ref", "min_severity"},
	state: func(_ *view, r row) string {
		if r.is("enabled") && r["confirmed_at"] == nil {
			return "held"
		}
		return healthOf(r)
	},
	sub: func(v *view, r row) string { return joined(platformName(r.text("kind")), r.text("address")) },
	why: func(v *view, r row) string {
		if r["confirmed_at"] == nil {
			return v.t("alert-targets.unconfirmed")
		}
		return joined(v.when("alert-targets.sent", r.at("told_at")), r.lastError())
	},
	acts: func(v *view, r row) []string {
		var all []string
		if v.may("operator") {
			all = append(all, "test")
			if r["confirmed_at"] == nil {
				all = append(all, "confirm")
			}
		}
		return append(all, ownerSwitch(v, r)...)
	},
}

var moderationResource = &resource{
	section: "/setup/moderation-chats", path: "/moderation-chats", id: "chat_id", kind: configfile.KindOf("moderation_chat"), changes: "owner",
	state: func(_ *view, r row) string {
		if r.is("enabled") && r["fault"] != nil {
			return "held"
		}
		return healthOf(r)
	},
	sub: func(v *view, r row) string { return joined(platformName(r.text("platform")), r.text("target_id")) },
	why: func(v *view, r row) string {
		return joined(r.text("fault"), v.n("moderation-chats.waiting", r.number("waiting")), r.lastError())
	},
	acts: ownerSwitch,
}

var eventTypeResource = &resource{
	section: "/setup/event-types", path: "/event-types", id: "event",
	kind: configfile.Resource{Name: "event_type", Fields: []configfile.Field{
		{Name: "template_id"}, {Name: "enabled", Type: configfile.Boolean}, {Name: "moderated", Type: configfile.Boolean}, {Name: "media_path"}, {Name: "tags", Type: configfile.List},
	}},
	state: func(_ *view, r row) string { return healthOf(r) },
	sub:   func(v *view, r row) string { return v.t("event-types.template", r.text("template_id")) },
	why: func(v *view, r row) string {
		if r.is("moderated") {
			return v.t("channel.moderated")
		}
		return ""
	},
	acts: func(v *view, r row) []string {
		if !v.may("operator") {
			return nil
		}
		return []string{switched(r)}
	},
}

var avatarResource = &resource{
	section: "/setup/avatars", path: "/avatars", id: "avatar_id", kind: configfile.Resource{Name: "avatar", Fields: []configfile.Field{{Name: "name"}}},
	state: func(*view, row) string { return "open" },
	sub:   func(_ *view, r row) string { return r.text("name") },
	why:   func(*view, row) string { return "" },
}
