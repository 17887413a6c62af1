package pages

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (s *site) framePaths() []string {
	return []string{"/find", "/find?q=city"}
}

func TestTheSearchFindsChannelsPostsAndPages(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Contains(t, p.get("/find?q=CITY").body, "/channels/city")
	require.Contains(t, p.get("/find?q=кузнеч").body, "/posts/"+s.ids["message"])
	require.Contains(t, p.get("/find?q=calen").body, `href="/calendar"`)
	p.header.Set("HX-Target", "found")
	require.True(t, strings.HasPrefix(p.get("/find?q=city").body, `<div role="group"`), "results alone")
}

// An open page follows the changes of its workspace; a page without a session does not.
func TestAnOpenPageFollowsChanges(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Equal(t, http.StatusSeeOther, s.person().get("/live?at=/").status)
	page := p.follow("/posts/" + s.ids["message"])
	s.Until("the page comes", func() bool { return strings.Contains(page.last(), "0 of 3 channels") })
	require.NotContains(t, page.last(), "<!doctype", "the frame stays")
	require.Equal(t, http.StatusSeeOther, p.post("/posts/"+s.ids["message"]+"/skip", "reason", "too late").status)
	s.Until("the change comes", func() bool {
		return strings.Contains(page.last(), "too late")
	})
	list := p.follow("/channels")
	s.Until("the list comes", func() bool { return list.last() != "" })
	before := list.last()
	require.Equal(t, http.StatusSeeOther, p.post("/channels/sport/resume").status)
	s.Until("an operator action is a change", func() bool { return list.last() != before })
	require.Equal(t, http.StatusSeeOther, p.post("/logout-everywhere").status)
	s.Until("the stream ends with the session", func() bool { return page.ended() && list.ended() })
}

// Pages that show the same thing share their reads.
func TestManyOpenPagesCostFewReads(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	pages := make([]*followed, 0, 60)
	for i := range cap(pages) {
		pages = append(pages, p.follow([]string{"/", "/posts", "/channels"}[i%3]))
	}
	all := func(part string) func() bool {
		return func() bool {
			for _, page := range pages {
				if !strings.Contains(page.last(), part) {
					return false
				}
			}
			return true
		}
	}
	s.Until("all pages are open", all(`id="nav-side"`))
	before := s.reads()
	for i := range 3 {
		s.Exec(`select autopost.raise_alert('news', 'auth_lost', $1, '{"message": "the token was revoked"}', '{}')`, fmt.Sprint("credential:", i))
		s.Until("each page shows the alert", all(fmt.Sprint("credential:", i)))
	}
	require.Less(t, s.reads()-before, 60, "3 changes of 60 pages")
}

// Open pages that need more reads than the limit allows wait for them. That is not an error.
func TestOpenPagesWaitForTheirReads(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	var pages []*followed
	for i := range 50 {
		pages = append(pages, p.follow(fmt.Sprintf("/posts?q=word%d", i)))
	}
	for i, page := range pages {
		s.Until("each page comes", func() bool { return strings.Contains(page.last(), fmt.Sprintf("word%d", i)) })
	}
	require.NotContains(t, s.log(), "web.unavailable")
	require.NotContains(t, s.log(), "web.summary_missing")
	require.NotContains(t, s.log(), `"level":"ERROR"`)
}

// followed is the event stream of an open page.
type followed struct {
	over chan struct{}
	path string

	mu   sync.Mutex
	html string
	at   time.Time
}

// follow opens the stream of a page. The end of the test closes it.
func (p *person) follow(path string) *followed {
	p.s.t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(p.s.t.Context()))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.s.url+"/live?at="+url.QueryEscape(path), http.NoBody)
	require.NoError(p.s.t, err)
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(p.s.t, err)
	require.Equal(p.s.t, "text/event-stream", response.Header.Get("Content-Type"))
	f := &followed{over: make(chan struct{}), path: path}
	p.s.t.Cleanup(func() { end(); <-f.over })
	go func() {
		defer close(f.over)
		defer func() { _ = response.Body.Close() }()
		f.read(bufio.NewReader(response.Body))
	}()
	return f
}

func (f *followed) read(lines *bufio.Reader) {
	for event := ""; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if name, found := strings.CutPrefix(line, "event: "); found {
			event = strings.TrimSpace(name)
		}
		var html string
		if data, found := strings.CutPrefix(line, "data: "); found && event == "page" && json.Unmarshal([]byte(data), &html) == nil {
			f.mu.Lock()
			f.html, f.at = html, time.Now()
			f.mu.Unlock()
		}
	}
}

// last returns the page as it came last; "" before.
func (f *followed) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.html
}

func (f *followed) ended() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// reads is how often pages have read from the database.
func (s *site) reads() (sum int) {
	for name, value := range s.Metrics(s.url) {
		if regexp.MustCompile(`^autopost_database_seconds_count\{.*function="(get_|list_|resolve_session|health|calendar|forecast)`).MatchString(name) {
			sum += int(value)
		}
	}
	return sum
}
