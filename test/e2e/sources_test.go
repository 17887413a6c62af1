package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// document is a generated feed.
func document(t *testing.T, r feeds.RSS) []byte {
	t.Helper()
	raw, err := r.Document()
	require.NoError(t, err)
	return raw
}

// titles counts the first lines of what the receivers hold.
func titles(h *harness.Harness) map[string]int {
	found := map[string]int{}
	for place, copies := range h.Copies() {
		title, _, _ := strings.Cut(place.Text, "\n")
		found[title] += copies
	}
	return found
}

// A source is made, seen, changed and stopped by commands alone.
func TestSourcesByCommand(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.World.Feeds.Set("wire", "application/rss+xml", document(t, feeds.RSS{Items: 3, Charset: "windows-1251"}))
	address := h.WorldURL + "/feeds/wire"
	require.Contains(t, ok(t, h, "source", "add", "wire", "--url", address, "--backfill", "1", "--dry-run", because), "dry run")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.pull_sources`))
	require.Contains(t, ok(t, h, "source", "add", "wire", "--url", address, "--backfill", "1", "--tag", "news", because), "backfill_items")
	again := h.Run(nil, "source", "add", "wire", "--url", address, because)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "autopost source set")

	d := h.Serve()
	h.Until("the newest item is sent", func() bool { return len(h.Accepted()) == 2 })
	require.Equal(t, map[string]int{"Новость 3": 2}, titles(h))
	list := items[struct {
		Enabled  bool
		LastPoll time.Time `json:"polled_at"`
		NextPoll time.Time `json:"next_poll_at"`
		Seen     int       `json:"items_seen"`
	}](t, ok(t, h, "source", "list", "--json"))
	require.Len(t, list, 1)
	require.True(t, list[0].Enabled)
	require.Equal(t, 3, list[0].Seen)
	require.InDelta(t, 300, list[0].NextPoll.Sub(list[0].LastPoll).Seconds(), 1)

	h.World.Feeds.Set("wire", "application/rss+xml", document(t, feeds.RSS{Items: 6, Charset: "koi8-r"}))
	ok(t, h, "source", "set", "wire", "--include", "/[46]$/", because)
	h.Until("what the filter lets through is sent", func() bool { return len(h.Accepted()) == 6 })
	require.Equal(t, map[string]int{"Новость 3": 2, "Новость 4": 2, "Новость 6": 2}, titles(h))
	require.Contains(t, ok(t, h, "source", "show", "wire"), `/[46]$/`)
	require.Equal(t, "1", pgtest.Value[string](h.DB, `select stats_json ->> 'seen_include' from autopost.ingest_runs where stats_json ? 'seen_include'`))

	ok(t, h, "source", "disable", "wire", because)
	require.Contains(t, ok(t, h, "source", "disable", "wire", because), "already")
	asleep := h.Run(nil, "source", "fetch", "wire", because)
	require.Equal(t, 1, asleep.Code)
	require.Contains(t, asleep.Stderr, "disabled")
	seen := polls(h)
	ok(t, h, "source", "enable", "wire", because)
	h.Until("it is polled again", func() bool { return polls(h) > seen })
	seen = polls(h)
	ok(t, h, "source", "fetch", "wire", because)
	h.Until("and again when somebody asks", func() bool { return polls(h) > seen })
	require.Zero(t, d.Stop())

	for args, says := range map[string]string{
		"source add x --url ftp://h --reason=r":                     "config_json.url is not of its form",
		"source add x --kind gopher --reason=r":                     "gopher",
		"source add x --url https://h --config nonsense --reason=r": "must be a JSON object",
		"source test": "either a source id or flags",
		"source import /nowhere/list.opml --reason=r": "/nowhere/list.opml",
	} {
		result := h.Run(nil, strings.Fields(args)...)
		require.Equal(t, 2, result.Code, args)
		require.Contains(t, result.Stderr, says, args)
	}
}

// A test fetches, says what would come in and where it would go, and writes nothing.
func TestSourceIsTestedFirst(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.World.Feeds.Set("wire", "application/rss+xml", document(t, feeds.RSS{Items: 12}))
	found := ok(t, h, "source", "test", "--url", h.WorldURL+"/feeds/wire", "--backfill", "2", "--exclude", "item 12")
	require.Contains(t, found, "12 items; 2 would be published")
	require.Contains(t, found, "skip: exclude")
	require.Contains(t, found, "2 of 2 channels would get it")
	require.Contains(t, found, "Item 11")

	h.World.Feeds.Set("page", "text/html", []byte(`<!doctype html><html><head><link rel="alternate" type="application/rss+xml" href="/feeds/wire"></head></html>`))
	page := h.Run(nil, "source", "test", "--url", h.WorldURL+"/feeds/page")
	require.Equal(t, 1, page.Code)
	require.Contains(t, page.Stderr, "HTML page")
	require.Contains(t, page.Stderr, h.WorldURL+"/feeds/wire")

	h.World.Feeds.Set("undated", "text/xml", []byte(`<rss version="2.0"><channel><item><title>A</title><guid>1</guid></item></channel></rss>`))
	undated := h.Run(nil, "source", "test", "--url", h.WorldURL+"/feeds/undated", "--json")
	require.Zero(t, undated.Code)
	require.Contains(t, undated.Stdout, "no item has a readable date")
	for args, says := range map[string]string{
		`--url ` + h.WorldURL + `/feeds/nowhere`:                                                                   "pull_http_404",
		`--kind api --url ` + h.WorldURL + `/feeds/wire --config {"map":{"id":"/id"}}`:                             "must be JSON",
		`--kind db --config {"auth_ref":"crm","query":"select$1","cursor_column":"id"}`:                            "credential_bindings",
		`--kind db --config {"auth_ref":"dsn","query":"select(id),$1::text||from_it","cursor_column":"id"} --json`: "pull_db_query",
	} {
		h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'dsn', 'postgres', 'env:CRM_DSN') on conflict do nothing`)
		result := h.Run([]string{"CRM_DSN=" + h.URL("autopost_reader")}, append([]string{"source", "test"}, strings.Fields(args)...)...)
		require.Equal(t, 1, result.Code, args)
		require.Contains(t, result.Stdout+result.Stderr, says, args)
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select (select count(*) from autopost.pull_sources)::int + (select count(*) from autopost.messages)::int
		+ (select count(*) from autopost.pull_receipts)::int + (select count(*) from autopost.events)::int`))
}

// A list of feeds becomes sources, once however often it is imported, and not at all
// when one of them is wrong.
func TestFeedListsAreImported(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	dir := t.TempDir()
	opml, csv := filepath.Join(dir, "list.opml"), filepath.Join(dir, "list.csv")
	require.NoError(t, os.WriteFile(opml, []byte(`<opml version="2.0"><body><outline text="City"><outline text="One" xmlUrl="https://one.example/rss"/>
		<outline text="Two" xmlUrl="https://two.example/rss"/></outline></body></opml>`), 0o600))
	require.NoError(t, os.WriteFile(csv, []byte("url,title,tags\nhttps://two.example/rss,Two,x\nhttps://three.example/rss,Three,flats;rent\n"), 0o600))
	count := func() int { return pgtest.Value[int](h.DB, `select count(*)::int from autopost.pull_sources`) }
	require.Contains(t, ok(t, h, "source", "import", opml, "--dry-run", because), "https://one.example/rss")
	require.Zero(t, count())
	wrong := h.Run(nil, "source", "import", opml, "--interval", "0s", because)
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Stderr, "nothing was changed: 2 of 2")
	require.Zero(t, count())
	ok(t, h, "source", "import", opml, "--interval", "600s", "--tag", "all", because)
	require.Equal(t, 2, count())
	require.Contains(t, ok(t, h, "source", "import", csv, because), "exists already")
	require.Equal(t, 3, count())
	require.Contains(t, ok(t, h, "source", "import", opml, "--interval", "900s", because), "exists already")
	require.Equal(t, 3, count())
	require.Equal(t, []string{`["all", "City"] 600`, `["all", "City"] 600`, `["flats", "rent"] none`}, pgtest.Column[string](h.DB, `
		select format('%s %s', config_json ->> 'tags', coalesce(config_json ->> 'interval_seconds', 'none')) from autopost.pull_sources order by 1`))
	require.Equal(t, 3, pgtest.Value[int](h.DB, `select count(*)::int from autopost.workspace_endpoints where kind = 'pull_source'`))
}

// Feeds move, ask for a delay, are large, and end. The daemon follows, waits, reads and stops.
func TestFeedsHaveLives(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	set := func(name string, more string) {
		h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
			values ('news', $1, 'rss', jsonb_build_object('url', $2::text, 'interval_seconds', 1, 'backfill_items', 1) || $3::text::jsonb)`, name, h.WorldURL+"/feeds/"+name, more)
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', $1, 'pull_source', $1)`, name)
	}
	set("old", `{"template": "old {title}"}`)
	set("large", `{"template": "large {title}"}`)
	set("busy", `{"template": "busy {title}"}`)
	h.World.Feeds.Redirect("old", http.StatusMovedPermanently, "/feeds/new")
	h.World.Feeds.Set("new", "application/rss+xml", document(t, feeds.RSS{Items: 2}))
	h.World.Feeds.Set("large", "application/rss+xml", document(t, feeds.RSS{Items: 1000, Size: 5 << 20}))
	h.Fault(sim.Fault{Platform: "feeds", Chat: "busy", To: 1, Effect: sim.EffectStatus, Status: http.StatusServiceUnavailable, RetryAfter: 3600})
	h.Serve()
	h.Until("both are read", func() bool { return len(h.Accepted()) == 4 })
	require.Equal(t, map[string]int{"old Item 2": 2, "large Item 1000": 2}, titles(h))
	requests := func(name string) int {
		return len(h.World.Log.Entries(sim.Filter{Platform: "feeds", Chat: name}))
	}
	asked := requests("old")
	h.Until("it is asked where it lives now", func() bool { return requests("new") >= asked+2 })
	require.Equal(t, asked, requests("old"))
	require.Equal(t, "pull_moved", pgtest.Value[string](h.DB, `select error ->> 'code' from autopost.events where meta ->> 'source_id' = 'old'`))
	require.Equal(t, 1, requests("busy"))
	h.UntilTrue(`select next_poll_at > now() + interval '59 minutes' from autopost.pull_cursors where source_id = 'busy'`)

	h.World.Feeds.Gone("new")
	h.UntilTrue(`select not enabled and stopped ->> 'code' = 'pull_http_410' from autopost.pull_sources where source_id = 'old'`)
	require.Contains(t, ok(t, h, "source", "list"), "stopped: pull_http_410")
}

// shop is an API with a key, that shows its newest posts first, three to a page.
type shop struct {
	mu    sync.Mutex
	posts int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("X-Key") != "canary-api-key" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var page int
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
	list := []map[string]any{}
	for n := s.posts - page*3; n > max(0, s.posts-page*3-3); n-- {
		list = append(list, map[string]any{"id": n, "body": fmt.Sprint("Offer ", n)})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
}

// APIs and databases are sources like feeds: what is new comes in, once.
func TestAPIAndDatabaseSources(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	s := &shop{posts: 4}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	h.Exec(`create schema crm; create table crm.flats (id int primary key, title text); grant usage on schema crm to public; grant select on crm.flats to public;
		insert into crm.flats select n, 'Flat ' || n from generate_series(1, 5) n`)
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref, hosts) values
		('news', 'shop', 'http', 'env:SHOP_KEY', array[$1]), ('news', 'crm', 'postgres', 'env:CRM_DSN', null)`, strings.TrimPrefix(server.URL, "http://"))
	secrets := []string{"SHOP_KEY=canary-api-key", "CRM_DSN=" + h.URL("autopost_reader")}
	ok(t, h, "source", "add", "shop", "--kind", "api", "--url", server.URL, "--interval", "1s", "--backfill", "1", because, "--config",
		`{"items": "/data", "map": {"id": "/id", "text": "/body"}, "auth_ref": "shop", "auth_header": "X-Key", "paging": {"by": "page", "parameter": "page", "first": 0}}`)
	ok(t, h, "source", "add", "crm", "--kind", "db", "--interval", "1s", "--backfill", "2", because, "--config",
		`{"auth_ref": "crm", "cursor_column": "id", "query": "select id, title from crm.flats where $1::int is null or id > $1"}`)
	d := h.Serve(secrets...)
	h.Until("the newest of both are sent", func() bool { return len(h.Accepted()) == 6 })
	require.Equal(t, map[string]int{"Offer 4": 2, "Flat 4": 2, "Flat 5": 2}, titles(h))
	s.mu.Lock()
	s.posts = 12
	s.mu.Unlock()
	h.Exec(`insert into crm.flats select n, 'Flat ' || n from generate_series(6, 8) n`)
	h.Until("all that is new is sent", func() bool { return len(titles(h)) == 14 })
	h.Drained("news")
	seen := pgtest.Value[time.Time](h.DB, `select min(last_poll_at) from autopost.pull_cursors`)
	h.UntilTrue(`select min(last_poll_at) > $1 from autopost.pull_cursors`, seen.Add(2*time.Second))
	h.Drained("news")
	for title, copies := range titles(h) {
		require.Equal(t, 2, copies, title)
	}
	require.NotContains(t, d.Log(), "canary")
	h.Verified()
}
