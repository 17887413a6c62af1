package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// channelList is a page of channels.
type channelList struct {
	Channels []channel
	Next     string
}

// state is why a channel is not open, or open.
func (c channel) state(now time.Time) string {
	switch {
	case !c.Enabled:
		return "disabled"
	case c.AuthHeld, c.RightsHeld != nil, c.CredentialMissingAt != nil:
		return "held"
	case c.PausedUntil != nil && c.PausedUntil.After(now):
		return "paused"
	case c.CooldownUntil != nil && c.CooldownUntil.After(now):
		return "cooldown"
	}
	return "open"
}

// cause is the reason for the state in words; "" for an open channel.
func (c channel) cause(v *view) string {
	switch {
	case c.AuthHeld:
		return v.t("channel.auth_held", platformName(c.Platform), c.AuthRef)
	case c.CredentialMissingAt != nil:
		return v.t("channel.credential_missing", c.AuthRef)
	case c.RightsHeld != nil:
		return v.t("channel.rights_held", *c.RightsHeld)
	case !c.Enabled:
		return v.t("channel.disabled")
	}
	return ""
}

// until is when the channel opens by time; nil if time does not open it.
func (c channel) until(now time.Time) *time.Time {
	switch c.state(now) {
	case "paused":
		return c.PausedUntil
	case "cooldown":
		return c.CooldownUntil
	}
	return nil
}

// channelActs are the acts on a channel in a state.
func (c channel) acts(now time.Time) []string {
	switch c.state(now) {
	case "disabled":
		return []string{"enable"}
	case "paused", "held":
		return []string{"resume", "disable"}
	}
	return []string{"pause", "disable"}
}

func (l channelList) title(v *view) string {
	closed := 0
	for _, c := range l.Channels {
		if s := c.state(v.now); s != "open" && s != "cooldown" {
			closed++
		}
	}
	switch {
	case len(l.Channels) == 0:
		return v.t("channels.title")
	case closed == 0:
		return v.t("channels.all_open")
	}
	return v.n("channels.closed", closed)
}

func (s *server) channels(v *view) {
	if v.r.URL.Query().Has("add") {
		v.showRows(channelResource)
		return
	}
	var list channelList
	var channels page[channel]
	target := url.Values{"limit": {"50"}}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		target.Set("cursor", cursor)
	}
	if err := v.get("/channels?"+target.Encode(), &channels); err != nil {
		v.fail(err)
		return
	}
	list.Channels = channels.Items
	slices.SortStableFunc(list.Channels, func(a, b channel) int {
		return strings.Compare(rank(a.state(v.now)), rank(b.state(v.now)))
	})
	if channels.NextCursor != nil {
		list.Next = *channels.NextCursor
	}
	v.render(http.StatusOK, channelsPage(v, list))
}

// rank puts what needs a person first.
func rank(state string) string {
	return map[string]string{"held": "1", "disabled": "2", "paused": "3", "cooldown": "4", "open": "5"}[state]
}
