package web

import (
	"errors"
	"strconv"
	"strings"
)

// entry is a page of the navigation.
type entry struct {
	path, word, icon, key string
	// number waits for a person; bad means that something failed.
	number int
	bad    bool
}

// summary is what every page shows of a workspace.
type summary struct {
	Pending            int         `json:"pending"`
	Alerts             int         `json:"alerts"`
	RefusedCredentials []openAlert `json:"refused_credentials"`
	XPosts             bool        `json:"x_posts"`
	Bot                bool        `json:"bot"`
}

// summary reads the summary once. A page is shown without it if it cannot be read.
func (v *view) summary() summary {
	if v.sums == nil {
		v.sums = &summary{}
		if err := v.get("/summary", v.sums); err != nil && !errors.Is(err, errDeferred) {
			v.s.Log.WarnContext(v.r.Context(), "web.summary_missing", "error", err)
		}
	}
	return *v.sums
}

// entries are the pages of the navigation for this person.
func (v *view) entries() []entry {
	sums := v.summary()
	all := []entry{
		{path: "/", word: "nav.overview", icon: "overview", key: "g o"},
		{path: "/posts", word: "nav.posts", icon: "posts", key: "g p"},
		{path: "/calendar", word: "nav.calendar", icon: "calendar", key: "g c"},
		{path: "/decisions", word: "nav.decisions", icon: "decisions", key: "g d", number: sums.Pending},
		{path: "/channels", word: "nav.channels", icon: "channels", key: "g h"},
	}
	if sums.Bot {
		all = append(all, entry{path: "/bot", word: "nav.bot", icon: "bot"})
	}
	if sums.XPosts {
		all = append(all, entry{path: "/x-posts", word: "nav.x_posts", icon: "globe"})
	}
	return append(all,
		entry{path: "/operations", word: "nav.operations", icon: "operations", number: sums.Alerts, bad: true},
		entry{path: "/setup", word: "nav.setup", icon: "setup"})
}

// tabs are the pages in reach of the thumb.
func (v *view) tabs() []entry {
	var all []entry
	for _, e := range v.entries() {
		switch e.path {
		case "/decisions":
			if v.may("editor") {
				all = append(all, entry{path: "/compose", word: "nav.new", icon: "plus"})
			}
			all = append(all, e)
		case "/", "/posts":
			all = append(all, e)
		}
	}
	return all
}

func (v *view) isAt(path string) bool {
	at := v.r.URL.Path
	return at == path || path != "/" && strings.HasPrefix(at, path+"/")
}

// upTo is a number of a dot.
func (v *view) upTo(n int) string {
	if n > 99 {
		return "99+"
	}
	return strconv.Itoa(n)
}

// keyWord is what a key does.
type keyWord struct {
	keys []string
	word string
}

// keyWords are the keys that this person can use.
func (v *view) keyWords() []keyWord {
	all := []keyWord{
		{[]string{"Ctrl K", "/"}, "hotkeys.search"}, {[]string{"g", "o"}, "nav.overview"}, {[]string{"g", "p"}, "nav.posts"}, {[]string{"g", "c"}, "nav.calendar"},
		{[]string{"g", "d"}, "nav.decisions"}, {[]string{"g", "h"}, "nav.channels"}, {[]string{"j", "k"}, "hotkeys.move"},
		{[]string{"Enter"}, "hotkeys.open"}, {[]string{"Ctrl Enter"}, "hotkeys.submit"}, {[]string{"Esc"}, "hotkeys.close"},
	}
	if v.may("editor") {
		all = append(all, keyWord{[]string{"n"}, "nav.new"}, keyWord{[]string{"m"}, "hotkeys.shift"})
	}
	if v.may("operator") {
		all = append(all, keyWord{[]string{"x"}, "hotkeys.mark"})
	}
	if v.may("approver") {
		all = append(all, keyWord{[]string{"a", "r", "e"}, "hotkeys.decide"})
	}
	return all
}
