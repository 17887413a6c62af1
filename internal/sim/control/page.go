package control

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"autopost/internal/sim"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"segments": segments,
	"size":     size,
	"initial":  initial,
	"classes":  func(kinds []string) string { return strings.Join(kinds, " ") },
}).Parse(pageText))

// chatView is one chat on the page: its posts and its refused requests.
type chatView struct {
	Platform, Chat, Title string
	Link                  string
	Posts                 []*post // threads, newest first
	Refusals              []sim.Entry
	Accepted, Refused     int
}

// shown is the maximum number of posts and refusals per chat on the page.
const shown = 100

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	entries := s.core.Log.Entries()
	chats := byChat(entries)
	chosen := slices.DeleteFunc(slices.Clone(chats), func(c *chatView) bool {
		return q.Get("platform") != "" && c.Platform != q.Get("platform") || q.Has("chat") && c.Chat != q.Get("chat")
	})
	var b bytes.Buffer
	err := page.Execute(&b, map[string]any{
		"Totals": s.core.Log.Totals(), "Chats": chats, "Chosen": chosen, "Asked": askedFor(entries), "Filtered": len(q) > 0, "Faults": s.core.Faults.List(),
	})
	if err != nil {
		http.Error(w, "render page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Text comes from posts: the page must not load or run anything.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	// An error here means that the client is gone.
	_, _ = w.Write(b.Bytes())
}

// byChat groups the entries by platform and chat, newest first within a chat.
func byChat(entries []sim.Entry) []*chatView {
	views := map[[2]string]*chatView{}
	posted := map[*chatView][]sim.Entry{}
	var order []*chatView
	for _, e := range slices.Backward(entries) {
		failed := e.Status >= 400 || e.Fault != "" || e.End.IsZero()
		if hasNoChat(e) && !failed {
			continue
		}
		key := [2]string{e.Platform, e.Chat}
		v := views[key]
		if v == nil {
			v = &chatView{Platform: e.Platform, Chat: e.Chat, Title: e.ChatTitle}
			v.Link = "?platform=" + url.QueryEscape(e.Platform) + "&chat=" + url.QueryEscape(e.Chat)
			views[key] = v
			order = append(order, v)
		}
		if v.Title == "" {
			v.Title = e.ChatTitle
		}
		if e.Accepted && (len(e.MessageIDs) > 0 || len(e.Edited) > 0) {
			v.Accepted++
			if len(posted[v]) < shown {
				posted[v] = append(posted[v], e)
			}
		}
		if failed {
			v.Refused++
			if len(v.Refusals) < shown {
				v.Refusals = append(v.Refusals, e)
			}
		}
	}
	changes := changesOf(entries)
	for _, v := range order {
		v.Posts = threads(posted[v], changes[[2]string{v.Platform, v.Chat}])
	}
	slices.SortStableFunc(order, func(a, b *chatView) int {
		return strings.Compare(a.Platform+"\x00"+a.Title+"\x00"+a.Chat, b.Platform+"\x00"+b.Title+"\x00"+b.Chat)
	})
	return order
}

// hasNoChat reports whether a request does not belong to a chat: feeds, files, uploads, checks.
func hasNoChat(e sim.Entry) bool {
	return e.Chat == "" || e.Platform == "feeds" || e.Platform == "files" || e.Platform == "s3"
}

// asked counts the requests for something that is not a chat.
type asked struct {
	Platform, What string
	Times          int
}

func askedFor(entries []sim.Entry) []asked {
	times := map[asked]int{}
	for _, e := range entries {
		if hasNoChat(e) {
			what := e.Chat
			if what == "" {
				what = e.Method
			}
			times[asked{Platform: e.Platform, What: what}]++
		}
	}
	list := make([]asked, 0, len(times))
	for a, n := range times {
		list = append(list, asked{Platform: a.Platform, What: a.What, Times: n})
	}
	slices.SortFunc(list, func(a, b asked) int { return strings.Compare(a.Platform+"\x00"+a.What, b.Platform+"\x00"+b.What) })
	return list
}

// segment is a stretch of text with the same marks.
type segment struct {
	Text  string
	Kinds []string
	URL   string
}

// segments splits a text at the ends of its marks.
func segments(text string, marks []sim.Mark) []segment {
	units := utf16.Encode([]rune(text))
	cuts := []int{0, len(units)}
	for _, m := range marks {
		cuts = append(cuts, clamp(m.From, len(units)), clamp(m.From+m.Length, len(units)))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var out []segment
	for i := range len(cuts) - 1 {
		s := segment{Text: string(utf16.Decode(units[cuts[i]:cuts[i+1]]))}
		for _, m := range marks {
			if m.From <= cuts[i] && cuts[i+1] <= m.From+m.Length {
				s.Kinds = append(s.Kinds, m.Type)
				if m.URL != "" {
					s.URL = m.URL
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// initial returns the letter that represents an account without a picture.
func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "·"
}

func clamp(n, limit int) int { return max(0, min(n, limit)) }

func size(bytes int64) string {
	switch {
	case bytes == 0:
		return ""
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
