package web

import (
	"net/http"
	"net/url"
	"strings"

	"autopost/internal/api"
)

// mostFound is how many results of a kind the search shows.
const mostFound = 5

// found is a result of the search.
type found struct {
	Path, Icon, Text, Note string
	// At is shown for posts.
	State string
}

// foundGroup are results of one kind.
type foundGroup struct {
	Title   string
	Results []found
}

// find answers the search of all pages: channels, posts, pages and actions.
func (s *server) find(v *view) {
	text := strings.TrimSpace(v.r.URL.Query().Get("q"))
	groups := []foundGroup{}
	if text != "" {
		for _, of := range []func(string) ([]found, error){v.findChannels, v.findPosts} {
			results, err := of(text)
			if err != nil && v.fault(err) == "" {
				v.fail(err)
				return
			}
			groups = append(groups, foundGroup{Results: results})
		}
		groups[0].Title, groups[1].Title = v.t("nav.channels"), v.t("nav.posts")
	}
	groups = append(groups, foundGroup{v.t("find.pages"), v.findPages(text)})
	if v.r.Header.Get("HX-Target") == "found" {
		v.render(http.StatusOK, foundList(v, text, groups))
		return
	}
	v.render(http.StatusOK, findPage(v, text, groups))
}

func (v *view) findChannels(text string) (all []found, err error) {
	var channels page[channel]
	if err := v.get(channelNames, &channels); err != nil {
		return nil, err
	}
	for _, c := range channels.Items {
		names := strings.ToLower(strings.Join(append([]string{c.ChannelID, c.name(), c.TargetID}, c.Tags...), " "))
		if strings.Contains(names, strings.ToLower(text)) && len(all) < mostFound {
			all = append(all, found{Path: "/channels/" + url.PathEscape(c.ChannelID), Icon: c.Platform, Text: c.name(), State: c.state(v.now)})
		}
	}
	return all, nil
}

func (v *view) findPosts(text string) (all []found, err error) {
	var posts page[api.MessageRow]
	if err := v.get("/posts?"+url.Values{"limit": {"5"}, "q": {text}}.Encode(), &posts); err != nil {
		return nil, err
	}
	for _, m := range posts.Items {
		title, _, _ := strings.Cut(firstLine(m.Excerpt), "\n")
		if title == "" {
			title = v.n("posts.media", m.Media)
		}
		all = append(all, found{Path: "/posts/" + m.MessageID, Icon: "posts", Text: title, Note: v.instant(m.CreatedAt)})
	}
	return all, nil
}

// findPages are pages of the navigation, and a new post.
func (v *view) findPages(text string) (all []found) {
	entries := v.entries()
	if v.may("editor") {
		entries = append(entries, entry{path: "/compose", word: "nav.new", icon: "plus"})
	}
	for _, e := range entries {
		if name := v.t(e.word); strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			all = append(all, found{Path: e.path, Icon: e.icon, Text: name})
		}
	}
	return all
}
