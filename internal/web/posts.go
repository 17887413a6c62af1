package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"autopost/internal/api"
)

// postView is a view of the list: posts with a delivery in a status.
type postView struct{ name, status string }

var postViews = []postView{
	{"all", ""}, {"waiting", "queued"}, {"retrying", "retry"}, {"sent", "sent"}, {"failed", "failed_permanent"}, {"dead", "dead"},
}

// postFilter is the filter of the list, as its address has it.
type postFilter struct {
	View, Text, Platform, Channel, From, Until, Cursor string
}

// postList is a page of posts.
type postList struct {
	Filter   postFilter
	Fault    string
	Posts    []api.MessageRow
	Next     string
	Channels []channel
}

func postFilterOf(q url.Values) postFilter {
	f := postFilter{View: q.Get("view"), Text: strings.TrimSpace(q.Get("q")), Platform: q.Get("platform"), Channel: q.Get("channel"), From: q.Get("from"), Until: q.Get("until"), Cursor: q.Get("cursor")}
	if f.View == "" {
		f.View = "all"
	}
	return f
}

// target returns the address of this list with one part of the filter replaced.
func (f postFilter) target(name, value string) string {
	q := url.Values{}
	for key, v := range map[string]string{"view": f.View, "q": f.Text, "platform": f.Platform, "channel": f.Channel, "from": f.From, "until": f.Until} {
		if key == name {
			v = value
		}
		if v != "" && (key != "view" || v != "all") {
			q.Set(key, v)
		}
	}
	if name == "cursor" {
		q.Set("cursor", value)
	}
	if len(q) == 0 {
		return "/posts"
	}
	return "/posts?" + q.Encode()
}

// platforms are those of the channels, in the order of their names.
func (l postList) platforms() (all []string) {
	for _, c := range l.Channels {
		if !slices.Contains(all, c.Platform) {
			all = append(all, c.Platform)
		}
	}
	slices.Sort(all)
	return all
}

// isEmpty reports whether the list has all posts.
func (f postFilter) isEmpty() bool {
	return f.View == "all" && f.Text == "" && f.Platform == "" && f.Channel == "" && f.From == "" && f.Until == ""
}

// query returns the parameters of the operation. fault is what is wrong with a date.
func (f postFilter) query(v *view) (q url.Values, fault string) {
	q = url.Values{"limit": {"50"}}
	for _, p := range postViews {
		if p.name == f.View && p.status != "" {
			q.Set("status", p.status)
		}
	}
	for name, value := range map[string]string{"q": f.Text, "platform": f.Platform, "channel_id": f.Channel, "cursor": f.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q, v.days(q, f.From, f.Until)
}

func (s *server) posts(v *view) {
	list := postList{Filter: postFilterOf(v.r.URL.Query())}
	query, wrong := list.Filter.query(v)
	var channels page[channel]
	if err := v.get(channelNames, &channels); err != nil {
		v.fail(err)
		return
	}
	list.Channels = channels.Items
	var posts page[api.MessageRow]
	list.Fault = wrong
	status := http.StatusOK
	if wrong == "" {
		if err := v.get("/posts?"+query.Encode(), &posts); err != nil {
			if list.Fault = v.fault(err); list.Fault == "" {
				v.fail(err)
				return
			}
		}
	}
	if list.Fault != "" {
		status = http.StatusUnprocessableEntity
	}
	list.Posts = posts.Items
	if posts.NextCursor != nil {
		list.Next = *posts.NextCursor
	}
	if v.r.Header.Get("HX-Target") == "posts" {
		v.render(status, postsPanel(v, list))
		return
	}
	v.render(status, postsPage(v, list))
}
