package rss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/httpfetch"
	"autopost/internal/ingest/pull/item"
)

// newsFeed returns an RSS document of n items, newest first, without dates.
func newsFeed(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`<rss version="2.0"><channel><title>t</title><link>https://x.example/</link>`)
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, `<item><title>News %d</title><guid isPermaLink="false">id-%d</guid><link>/%d</link></item>`, i, i, i)
	}
	b.WriteString(`</channel></rss>`)
	return b.Bytes()
}

func published(batch pull.Batch) []string {
	refs := []string{}
	for _, feedItem := range batch.Items {
		if !feedItem.Skip {
			refs = append(refs, feedItem.SourceRef)
		}
	}
	return refs
}

func requireFailure(t *testing.T, err error, code, says string) {
	t.Helper()
	var failure *pull.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, code, failure.Code)
	require.Contains(t, failure.Message, says)
}

func TestFirstPollPublishesTheNewestOnly(t *testing.T) {
	address := serve(t, newsFeed(5), "application/rss+xml")
	for backfill, want := range map[int][]string{0: {}, 2: {"id-4", "id-5"}, 9: {"id-1", "id-2", "id-3", "id-4", "id-5"}} {
		s := source(map[string]any{"url": address, "backfill_items": backfill})
		for _, unseen := range []string{"", "{}", "null"} {
			s.Cursor = json.RawMessage(unseen)
			batch, err := New(client).Fetch(t.Context(), s)
			require.NoError(t, err)
			require.Len(t, batch.Items, 5, "an item that is not published is marked as seen")
			require.Equal(t, want, published(batch))
		}
		s.Cursor = json.RawMessage(`{"first_seen_done":true}`)
		batch, err := New(client).Fetch(t.Context(), s)
		require.NoError(t, err)
		require.Len(t, published(batch), 5, "later polls return all items")
	}
}

func TestOnlyTheLastCursorEndsThePoll(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"new"`)
		_, _ = w.Write(newsFeed(3))
	}))
	defer server.Close()
	s := source(map[string]any{"url": server.URL})
	read := func(raw json.RawMessage) item.Cursor {
		c, err := item.ParseCursor(raw)
		require.NoError(t, err)
		require.Equal(t, c.ETag == `"new"`, c.ReadAt != nil)
		c.ReadAt = nil
		return c
	}

	s.Cursor = nil
	batch, err := New(client).Fetch(t.Context(), s)
	require.NoError(t, err)
	require.True(t, read(batch.Items[1].Cursor).FirstSight(), "after an incomplete first poll the next one is still the first")
	require.Equal(t, batch.Cursor, batch.Items[2].Cursor)
	require.Equal(t, item.Cursor{URLHash: item.Hash(server.URL), ETag: `"new"`, LastSeenID: "id-3", FirstSeenDone: true}, read(batch.Cursor))

	s.Cursor = json.RawMessage(`{"etag":"\"old\"","last_seen_id":"id-0","first_seen_done":true}`)
	batch, err = New(client).Fetch(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, item.Cursor{URLHash: item.Hash(server.URL), ETag: `"old"`, LastSeenID: "id-2", FirstSeenDone: true}, read(batch.Items[1].Cursor))
	require.Equal(t, `"new"`, read(batch.Cursor).ETag)
}

func TestConditionalRequest(t *testing.T) {
	var etag, since string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		etag, since = r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
		if etag == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 10:00:00 GMT")
		_, _ = w.Write(newsFeed(1))
	}))
	defer server.Close()
	s := source(map[string]any{"url": server.URL + "/a"})
	fetch := func() pull.Batch {
		batch, err := New(client).Fetch(t.Context(), s)
		require.NoError(t, err)
		return batch
	}

	batch := fetch()
	require.Empty(t, etag+since)
	require.Len(t, batch.Items, 1)
	s.Cursor = batch.Cursor
	unchanged := fetch()
	require.Equal(t, `"v1"`, etag)
	require.Equal(t, "Fri, 20 Nov 2026 10:00:00 GMT", since)
	require.Empty(t, unchanged.Items)
	require.JSONEq(t, string(batch.Cursor), string(unchanged.Cursor))

	s.Config = json.RawMessage(fmt.Sprintf(`{"url":%q}`, server.URL+"/b"))
	require.Len(t, fetch().Items, 1, "validators of another URL are not used")
	require.Empty(t, etag+since)
}

func TestInvalidAnswersAreRejected(t *testing.T) {
	deep := strings.Repeat("<a>", maxDepth+1)
	cp1251 := strings.Repeat("\xcd\xee\xe2\xee\xf1\xf2\xfc ", 50)
	cases := map[string]struct{ body, code, says string }{
		"HTML":             {"\n<!DOCTYPE HTML><html><head><title>Log in</title>", "pull_not_a_feed", "HTML page"},
		"XHTML":            {`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"></html>`, "pull_not_a_feed", "HTML page"},
		"a commented page": {`<!-- x --><html><body>`, "pull_not_a_feed", "HTML page"},
		"text":             {"Forbidden", "pull_not_a_feed", "neither XML nor JSON"},
		"nothing":          {"", "pull_not_a_feed", "empty"},
		"a sitemap":        {"<urlset></urlset>", "pull_not_a_feed", "<urlset>"},
		"a JSON answer":    {`{"error":"no"}`, "pull_not_a_feed", "not a JSON Feed"},
		"a JSON list":      {`[1]`, "pull_not_a_feed", "not a JSON Feed"},
		"JSON cut off":     {`{"version":"https://jsonfeed.org/version/1","items":[{"id":"1"`, "pull_malformed", "cut off"},
		"XML cut off":      {`<rss version="2.0"><channel><item><title>Half a sen`, "pull_malformed", "cut off"},
		"cut between":      {`<rss version="2.0"><channel><item><title>x</title></item>`, "pull_malformed", "<channel> is not closed"},
		"crossed tags":     {`<rss><channel><b></channel></b></rss>`, "pull_malformed", "</channel>"},
		"entities":         {`<!DOCTYPE rss [<!ENTITY a "aaaa"><!entity b "&a;&a;">]><rss>&b;</rss>`, "pull_malformed", "entities"},
		"too deep":         {"<rss>" + deep, "pull_malformed", "levels"},
		"attributes":       {"<rss " + strings.Repeat(`a="" `, maxAttributes+1) + "/>", "pull_malformed", "attributes"},
		"elements":         {"<rss>" + strings.Repeat("<a/>", maxElements+1) + "</rss>", "pull_malformed", "elements"},
		"unknown bytes":    {"<rss>" + cp1251 + "</rss>", "pull_malformed", "charset"},
		"unknown label":    {"<?xml version='1.0' encoding='x-made-up'?><rss>" + cp1251 + "</rss>", "pull_malformed", "x-made-up"},
		"false label":      {"<?xml version='1.0' encoding='utf-8'?><rss>" + cp1251 + "</rss>", "pull_malformed", "charset"},
		"half of UTF-16":   {"\xff\xfe<\x00r", "pull_malformed", "cut off"},
		"too large":        {"<rss>" + strings.Repeat(" ", httpfetch.MaxBody), "pull_too_large", "larger"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			address := serve(t, []byte(c.body), "text/html")
			_, err := New(client).Fetch(t.Context(), source(map[string]any{"url": address}))
			requireFailure(t, err, c.code, c.says)
		})
	}
}

func TestCharsets(t *testing.T) {
	const word = "Ёж"
	win, koi := "\xa8\xe6", "\xb3\xd6"
	utf16 := "\xff\xfe" + strings.Join(strings.Split(`<rss version="2.0"><channel><item><title>`, ""), "\x00") + "\x00" +
		"\x01\x04\x36\x04" + strings.Join(strings.Split(`</title></item></channel></rss>`, ""), "\x00") + "\x00"
	document := func(declaration, title string) string {
		return declaration + `<rss version="2.0"><channel><item><title>` + title + `</title></item></channel></rss>`
	}
	cases := map[string]struct{ body, contentType string }{
		"declared":             {document(`<?xml version="1.0" encoding="windows-1251"?>`, win), "text/xml; charset=utf-8"},
		"named by the server":  {document("", koi), "text/xml; charset=KOI8-R"},
		"server knows better":  {document(`<?xml version="1.0" encoding="UTF-8"?>`, win), "text/xml; charset=windows-1251"},
		"UTF-8, mislabelled":   {document(`<?xml version="1.0" encoding="windows-1251"?>`, word), "text/xml"},
		"UTF-8 with a mark":    {document("\uFEFF"+`<?xml version="1.1" encoding="UTF-8"?>`, word), "text/xml"},
		"UTF-16":               {utf16, "text/xml"},
		"control characters":   {document("", "\x01"+word+"\x0b"), "text/xml"},
		"blank before the XML": {document("\n\n"+`<?xml version="1.0"?>`, word), "text/xml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			address := serve(t, []byte(c.body), c.contentType)
			batch, err := New(client).Fetch(t.Context(), source(map[string]any{"url": address}))
			require.NoError(t, err)
			require.Len(t, batch.Items, 1)
			require.Equal(t, word, batch.Items[0].Payload.Text)
		})
	}
}

func TestConfigErrorsNameKeyAndRemedy(t *testing.T) {
	cases := map[string]string{
		`[]`:                              "config_json must be",
		`null`:                            "config_json must be",
		`{}`:                              "url must be",
		`{"url":"feed.xml"}`:              "url must be",
		`{"url":"file:///etc/passwd"}`:    "url must be",
		`{"url":"https://h","intervl":1}`: "intervl is unknown; remove it or use one of backfill_items",
		`{"url":"https://h","interval_seconds":0}`:   "interval_seconds must be 1 to",
		`{"url":"https://h","interval_seconds":"5"}`: "interval_seconds must be a whole number",
		`{"url":"https://h","backfill_items":-1}`:    "backfill_items must be 0 to",
		`{"url":"https://h","backfill_items":1.5}`:   "backfill_items must be a whole number",
		`{"url":"https://h","template":" "}`:         "template must not be empty",
		`{"url":"https://h","template":"{titel}"}`:   "template must contain known placeholders, got {titel}; use {title}",
		`{"url":"https://h","media":"all"}`:          `media must be "enclosures" or "none"`,
		`{"url":"https://h","tags":"news"}`:          "tags must be an array",
		`{"url":"https://h","include":[""]}`:         "include must not contain an empty string",
		`{"url":"https://h","exclude":[1]}`:          "exclude must be an array",
	}
	for raw, says := range cases {
		_, err := New(nil).Fetch(t.Context(), pull.Source{Config: json.RawMessage(raw)})
		requireFailure(t, err, "pull_config", says)
	}
	_, err := New(nil).Fetch(t.Context(), pull.Source{Config: json.RawMessage(`{"url":"https://h"}`), Cursor: json.RawMessage(`[]`)})
	requireFailure(t, err, "pull_cursor", "{}")
}

func TestFiltersMarkAsSeen(t *testing.T) {
	address := serve(t, []byte(`<rss version="2.0"><channel>
		<item><guid>4</guid></item>
		<item><guid>3</guid><title>РЕКЛАМА квартир</title></item>
		<item><guid>2</guid><title>Ипотека</title><description>про Квартиры и не только</description></item>
		<item><guid>1</guid><title>Погода</title></item></channel></rss>`), "")
	batch, err := New(client).Fetch(t.Context(), source(map[string]any{
		"url": address, "include": []string{"кварти", "Сводка"}, "exclude": []string{"реклама"},
	}))
	require.NoError(t, err)
	require.Len(t, batch.Items, 4)
	require.Equal(t, []string{"2"}, published(batch))

	s := source(map[string]any{"url": address, "exclude": []string{"реклама"}, "backfill_items": 1})
	s.Cursor = nil
	batch, err = New(client).Fetch(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, published(batch), "filtered items do not count as backfill")
}

func TestTextIsData(t *testing.T) {
	address := serve(t, []byte(`<rss version="2.0"><channel><item><title>{link} *stars* {summary}</title>
		<link>javascript:alert(1)</link><description>S</description><enclosure url="data:image/png;base64,AA" type="image/png"/>
		<enclosure url="https://user:pass@h.example/a b.png" type="image/png"/></item></channel></rss>`), "")
	batch, err := New(client).Fetch(t.Context(), source(map[string]any{"url": address}))
	require.NoError(t, err)
	payload := batch.Items[0].Payload
	require.Equal(t, "{link} *stars* {summary}", payload.Text)
	require.Equal(t, "None", payload.ParseMode)
	require.Equal(t, []pull.Media{{Type: "image", URL: "https://h.example/a%20b.png"}}, payload.Media)

	batch, err = New(client).Fetch(t.Context(), source(map[string]any{"url": address, "media": "none"}))
	require.NoError(t, err)
	require.Empty(t, batch.Items[0].Payload.Media)
}

func TestSourceRefIsStableAndFits(t *testing.T) {
	long := strings.Repeat("x", 513)
	body := `<rss version="2.0"><channel><item><guid>` + long + `</guid><title>a</title></item><item><title>b</title><pubDate>today</pubDate></item></channel></rss>`
	address := serve(t, []byte(body), "")
	var refs []string
	for range 2 {
		batch, err := New(client).Fetch(t.Context(), source(map[string]any{"url": address}))
		require.NoError(t, err)
		refs = append(refs, batch.Items[0].SourceRef, batch.Items[1].SourceRef)
	}
	require.Equal(t, []string{"sha256:" + item.Hash("b\n"), "sha256:" + item.Hash(long)}, refs[:2])
	require.Equal(t, refs[:2], refs[2:])
}

func TestDates(t *testing.T) {
	early := time.Date(10, 1, 1, 0, 0, 0, 0, time.UTC)
	read := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ahead, future := read.Add(23*time.Hour), read.Add(25*time.Hour)
	cases := map[string]struct {
		raw    string
		parsed *time.Time
		want   string
	}{
		"Moscow":           {"Fri, 20 Nov 2026 12:00:00 MSK", &read, "2026-11-20T09:00:00Z"},
		"Moscow, no day":   {"20 Nov 2026 12:00 msk", &read, "2026-11-20T09:00:00Z"},
		"Vladivostok":      {"Fri, 20 Nov 2026 12:00:00 VLAT", &read, "2026-11-20T02:00:00Z"},
		"with an offset":   {"Fri, 20 Nov 2026 12:00:00 +0000", &read, "2026-11-20T12:00:00Z"},
		"Russian":          {"Пт, 20 ноября 2026 г. 12:00 МСК", nil, "2026-11-20T09:00:00Z"},
		"Russian, no zone": {"20 ноября 2026 12:00", nil, "2026-11-20T12:00:00Z"},
		"by dots":          {"20.11.2026 12:00 +0300", nil, "2026-11-20T09:00:00Z"},
		"seconds":          {"1795176000", nil, "2026-11-20T12:00:00Z"},
		"milliseconds":     {"1795176000000", nil, "2026-11-20T12:00:00Z"},
		"words":            {"yesterday", nil, ""},
		"a clock ahead":    {"soon", &ahead, "2026-11-21T11:00:00Z"},
		"the future":       {"2030", &future, ""},
		"none":             {"", nil, ""},
		"an invalid year":  {"0010-01-01", &early, ""},
		"Moscow, no date":  {"yesterday MSK", &read, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := publishedAt(&gofeed.Item{Published: c.raw, PublishedParsed: c.parsed}, read)
			if c.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, c.want, got.Format(time.RFC3339))
		})
	}
}
