package rss

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
	"autopost/internal/outbound"
)

func TestStatusesAndConnections(t *testing.T) {
	for status, says := range map[int]string{401: "auth_ref", 404: "correct url", 410: "disabled", 429: "interval_seconds", 500: "500", 503: "503"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(status)
		}))
		_, err := New(client).Fetch(t.Context(), source(map[string]any{"url": server.URL}))
		requireFailure(t, err, fmt.Sprintf("pull_http_%d", status), says)
		failure, _ := errors.AsType[*pull.Failure](err)
		require.Equal(t, status == 410, failure.Gone)
		require.Equal(t, status == 429 || status == 503, failure.RetryAfter == 2*time.Minute, "%d", status)
		server.Close()
	}
	for code, cause := range map[string]error{
		"pull_blocked_address": outbound.ErrBlockedAddress,
		"pull_fetch_failed":    errors.New("connection refused"),
	} {
		doer := failing{cause}
		_, err := New(doer).Fetch(t.Context(), source(map[string]any{"url": "https://h.example/?key=canary-77"}))
		requireFailure(t, err, code, "h.example")
		require.NotContains(t, err.Error(), "canary")
	}
}

type failing struct{ cause error }

func (f failing) Do(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: f.cause}
}

// cursorOf fetches and returns the cursor after the poll.
func cursorOf(t *testing.T, s pull.Source) item.Cursor {
	t.Helper()
	batch, err := New(client).Fetch(t.Context(), s)
	require.NoError(t, err)
	c, err := item.ParseCursor(batch.Cursor)
	require.NoError(t, err)
	return c
}

func TestPaceIsInTheCursor(t *testing.T) {
	channel := func(inside string) string {
		return `<rss version="2.0"><channel><title>t</title>` + inside + `</channel></rss>`
	}
	for name, c := range map[string]struct {
		body, header string
		want         int
	}{
		"nothing":        {channel(""), "", 0},
		"ttl in minutes": {channel("<ttl>90</ttl>"), "", 5400},
		"twice a day": {`<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel><title>t</title>
			<sy:updatePeriod> daily </sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency></channel></rss>`, "", 43200},
		"max-age":      {channel(""), "public, Max-Age=600", 600},
		"the longest":  {channel("<ttl>1</ttl>"), "max-age=600", 600},
		"nonsense":     {channel("<ttl>often</ttl>"), "max-age=soon", 0},
		"out of range": {channel("<ttl>99999999999</ttl>"), "max-age=-5", 365 * 86400},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", c.header)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			require.Equal(t, c.want, cursorOf(t, source(map[string]any{"url": server.URL})).WaitSeconds)
		})
	}
}

// site is a server with configurable answers per path. It records the requested paths.
type site struct {
	*httptest.Server
	asked []string
}

func newSite(t *testing.T, answers map[string]http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.URL.Path)
		answers[r.URL.Path](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func redirect(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
}

func answer(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
}

func TestPermanentRedirectsAreStored(t *testing.T) {
	gone := false
	s := newSite(t, map[string]http.HandlerFunc{
		"/old": redirect(301, "/older"), "/older": redirect(308, "/new"), "/moody": redirect(302, "/new"), "/half": redirect(301, "/moody"),
		"/new": func(w http.ResponseWriter, r *http.Request) {
			if gone {
				w.WriteHeader(http.StatusGone)
				return
			}
			answer(newsFeed(1))(w, r)
		},
	})
	config := source(map[string]any{"url": s.URL + "/old"})
	first := cursorOf(t, config)
	require.Equal(t, s.URL+"/new", first.MovedTo)
	config.Cursor, _ = first.Encode()
	s.asked = nil
	require.Equal(t, s.URL+"/new", cursorOf(t, config).MovedTo)
	require.Equal(t, []string{"/new"}, s.asked, "the new address is used")

	for _, path := range []string{"/moody", "/half"} {
		require.Empty(t, cursorOf(t, source(map[string]any{"url": s.URL + path})).MovedTo, "a temporary redirect is not stored")
	}

	gone, s.asked = true, nil
	_, err := New(client).Fetch(t.Context(), config)
	requireFailure(t, err, "pull_http_410", "gone")
	require.Equal(t, []string{"/new", "/old", "/older", "/new"}, s.asked, "after a failure the configured address is used")
}

func TestFeedIsReadCompletelyOnceAWeek(t *testing.T) {
	var validators []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		validators = append(validators, r.Header.Get("If-None-Match"))
		_, _ = w.Write(newsFeed(1))
	}))
	defer server.Close()
	for _, days := range []int{6, 8} {
		s := source(map[string]any{"url": server.URL})
		at := time.Now().AddDate(0, 0, -days)
		s.Cursor, _ = item.Cursor{ETag: `"v"`, ReadAt: &at, FirstSeenDone: true}.Encode()
		_, err := New(client).Fetch(t.Context(), s)
		require.NoError(t, err)
	}
	require.Equal(t, []string{`"v"`, ""}, validators, "the second poll is unconditional")
}

func TestPageReportsItsFeeds(t *testing.T) {
	page := `<!doctype html><html><head><link rel="stylesheet" href="/x.css"><link rel="alternate" hreflang="de" href="/de">
		<link rel="Alternate" type="application/rss+xml" title="News" href="/news.xml"><link rel=alternate type=application/atom+xml href="https://other.example/atom"/></head>`
	address := serve(t, []byte(page), "text/html")
	_, err := New(client).Fetch(t.Context(), source(map[string]any{"url": address + "/blog/"}))
	requireFailure(t, err, "pull_not_a_feed", "source test")
	failure, _ := errors.AsType[*pull.Failure](err)
	require.Equal(t, []string{address + "/news.xml", "https://other.example/atom"}, failure.Found)
	require.NotContains(t, failure.Message, "http")
}

func TestFiltersByExpressionAndCategory(t *testing.T) {
	address := serve(t, []byte(`<rss version="2.0"><channel>
		<item><guid>4</guid><title>Sale: 50% off</title></item>
		<item><guid>3</guid><title>Plain</title><category>Sport</category></item>
		<item><guid>2</guid><title>Flat 12 m2</title></item>
		<item><guid>1</guid><title>Flat of 45 m2</title></item></channel></rss>`), "")
	batch, err := New(client).Fetch(t.Context(), source(map[string]any{
		"url": address, "include": []string{`/\b\d+ m2\b/`, "sport"}, "exclude": []string{`/(?i)flat 1\d/`, "/"},
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "3"}, published(batch))
	reasons := map[string]string{}
	for _, feedItem := range batch.Items {
		reasons[feedItem.SourceRef] = feedItem.SkipReason
	}
	require.Equal(t, map[string]string{"1": "", "2": "exclude", "3": "", "4": "include"}, reasons)

	_, err = New(client).Fetch(t.Context(), source(map[string]any{"url": address, "include": []string{"/(/"}}))
	requireFailure(t, err, "pull_config", "include must contain valid regular expressions, got /(/")
}

// A feed of 5 MB is read with bounded allocations.
func TestFeedOfFiveMegabytes(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>t</title>`)
	filler := strings.Repeat("слово и ещё одно ", 100)
	for n := 0; b.Len() < 5<<20; n++ {
		fmt.Fprintf(&b, `<item><guid>%d</guid><title>News %d</title><description>%s</description></item>`, n, n, filler)
	}
	b.WriteString(`</channel></rss>`)
	address := serve(t, []byte(b.String()), "application/rss+xml")
	fetcher := New(client)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	batch, err := fetcher.Fetch(t.Context(), source(map[string]any{"url": address}))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Greater(t, len(batch.Items), 1000)
	// The total of allocations, not the peak.
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(300), "MiB; the race detector adds a third")
}

func TestEveryPollReturnsACursor(t *testing.T) {
	address := serve(t, newsFeed(2), "text/xml")
	s := source(map[string]any{"url": address})
	s.Cursor = json.RawMessage(`{"url_hash":"of another","etag":"x","moved_to":"https://gone.example/","wait_seconds":5,"last_seen_id":"id-0"}`)
	c := cursorOf(t, s)
	require.Equal(t, item.Hash(address), c.URLHash)
	require.Empty(t, c.MovedTo+c.ETag)
	require.Zero(t, c.WaitSeconds)
	require.True(t, c.FirstSeenDone)
}
