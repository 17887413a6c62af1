//go:build pages

package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

const (
	manyDeliveries = 100_000
	// mostTransferred is the most that a page with its files transfers, in bytes.
	mostTransferred = 100_000
)

// fillHistory adds deliveries of 1,000 posts, sent over the last month, a part of them failed or waiting.
func (s *site) fillHistory() {
	s.t.Helper()
	s.Exec(`insert into autopost.messages (workspace_id, message_id, hash_version, content_hash, normalization_version, payload, tags, created_at, last_seen_at)
		select 'news', autopost.uuid_v7_of(now() - n * interval '40 minutes', 'm' || n), 1, md5('m' || n) || md5('n' || n), 1,
			jsonb_build_object('type', 'text', 'text', 'Story number ' || n || ' of the archive'), '{}', now() - n * interval '40 minutes', now()
		from generate_series(1, 1000) n`)
	s.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'news', 'old-' || n, 'telegram', (-2000000 - n)::text, 'bot', 'bot' from generate_series(1, 100) n`)
	s.Exec(fmt.Sprintf(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, created_at, updated_at, not_before, sent_at,
			provider_message_id, attempt, rendered_text, trace_id)
		select 'news', autopost.uuid_v7_of(m.created_at, m.message_id::text || c), m.message_id, 'old-' || c, 1, m.content_hash, 'sent', m.created_at, m.created_at, m.created_at,
			m.created_at + interval '3 seconds', '1', 1, 'Story', md5(m.message_id::text)::uuid
		from autopost.messages m, generate_series(1, %d) c where m.workspace_id = 'news' and m.payload ->> 'text' like 'Story number %%'`, manyDeliveries/1000))
	s.Exec(`analyze`)
	require.GreaterOrEqual(s.t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries`), manyDeliveries)
}

// With 100,000 deliveries each page is small, and painted soon. Times are printed; they are judged on a quiet machine.
func TestPagesStayFastWithAHistory(t *testing.T) {
	s := open(t)
	s.fillHistory()
	b := s.browser()
	b.start()
	var slow []string
	for _, path := range s.paths() {
		b.visit(path)
		paint := js[float64](b, `new Promise(done => { const at = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime; const wait = () => at() === undefined ? setTimeout(wait, 10) : done(at()); wait(); })`)
		bytes := js[int](b, `performance.getEntriesByType("navigation")[0].encodedBodySize + performance.getEntriesByType("resource").filter(e => e.initiatorType !== "fetch").reduce((sum, e) => sum + e.encodedBodySize, 0)`)
		t.Logf("%-60.60s first paint %4.0f ms, %6d bytes", path, paint, bytes)
		require.Less(t, bytes, mostTransferred, path)
		if paint > 200 {
			slow = append(slow, path)
		}
	}
	t.Logf("slower than 200 ms: %v", slow)
}

// A month is read within its bound of deliveries, and each day has its posts. Beyond the bound the page says so.
func TestAMonthOfManyDeliveriesIsBounded(t *testing.T) {
	s := open(t)
	s.fillHistory()
	p := s.owner()
	day := pgtest.Value[string](s.DB, `select to_char(now() - interval '15 days', 'YYYY-MM-DD')`)
	path := "/calendar?range=month&at=" + day
	bound := func(n int) {
		s.Exec(fmt.Sprintf(`create or replace function autopost.calendar_bound() returns int language sql immutable parallel safe as 'select %d'`, n))
	}
	bound(manyDeliveries + 1000)
	body := p.get(path).body
	require.Less(t, len(body), mostTransferred)
	require.NotContains(t, body, "so numbers may be too small")
	posts := pgtest.Value[int](s.DB, `select count(distinct d.message_id)::int from autopost.deliveries d where d.workspace_id = 'news' and d.sent_at >= $1::timestamptz and d.sent_at < $1::timestamptz + interval '1 day'`, day+" 00:00Z")
	require.Contains(t, body, fmt.Sprintf(", %d posts", posts))
	bound(20_000)
	require.Contains(t, p.get(path).body, "so numbers may be too small")
}

// mostUntilShown is the most that a change takes until an open page shows it, on a quiet machine.
const mostUntilShown = time.Second

// calm is the time between two changes of people, on average.
const calm = 5 * time.Second

// showsChanges makes changes, a calm apart, and returns the times until all pages show them. A change is an
// alert, and with posts every second one is a post that is pushed.
func (s *site) showsChanges(first, n int, pages []*followed, posts bool) (took []time.Duration) {
	s.t.Helper()
	for i := first; i < first+n; i++ {
		mark, shows := fmt.Sprintf("credential:%d:", i), pages
		at := time.Now()
		if posts && i%2 == 1 {
			mark = fmt.Sprintf("Change number %d of the test", i)
			s.push(mark)
			shows = slices.DeleteFunc(slices.Clone(pages), func(f *followed) bool { return f.path != "/" && f.path != "/posts" })
		} else {
			s.Exec(`select autopost.raise_alert('news', 'auth_lost', $1, '{"message": "the token was revoked"}', '{}')`, fmt.Sprint("credential:", i))
		}
		last := at
		for _, page := range shows {
			s.Until("a page shows the change", func() bool { return strings.Contains(page.last(), mark) })
			if shown := page.shownAt(); shown.After(last) {
				last = shown
			}
		}
		took = append(took, last.Sub(at).Round(time.Millisecond))
		b := time.NewTimer(calm)
		<-b.C
	}
	return took
}

// wire is the secret of an endpoint whose posts are not moderated.
const wire = "secret-of-the-wire"

// push sends a post to the endpoint.
func (s *site) push(text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/hooks/push", strings.NewReader(fmt.Sprintf(`{"text": %q}`, text)))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+wire)
	r.Header.Set("Content-Type", "application/json")
	got := s.person().send(r)
	require.Equal(s.t, http.StatusAccepted, got.status, got.body)
}

// One open page shows a change soon. 200 open pages of different kinds show it, too, and cost few reads.
func TestManyOpenPagesAreQuiet(t *testing.T) {
	s := open(t)
	s.fillHistory()
	s.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash) values ('news', 'wire', 'webhook_push', encode(sha256($1::text::bytea), 'hex'))`, wire)
	p := s.owner()
	pages := []*followed{p.follow("/")}
	opened := func() bool {
		for _, page := range pages {
			if !strings.Contains(page.last(), `id="nav-side"`) {
				return false
			}
		}
		return true
	}
	s.Until("the page is open", opened)
	one := s.showsChanges(0, 5, pages, false)
	slices.Sort(one)
	t.Logf("one page shows a change after %v", one)
	require.Less(t, one[len(one)/2], mostUntilShown)

	for i := range 200 - 1 {
		pages = append(pages, p.follow([]string{"/posts", "/channels", "/posts?view=dead", "/"}[i%4]))
	}
	s.Until("all pages are open", opened)
	reads, began := s.reads(), time.Now()
	const changes = 20
	all := s.showsChanges(5, changes, pages, true)
	read, spent := s.reads()-reads, time.Since(began)
	t.Logf("200 pages show a change after %v", all)
	t.Logf("%d reads in %s for %d changes on 200 pages", read, spent.Round(time.Second), changes)
	slices.Sort(all)
	require.Less(t, all[len(all)/2], mostUntilShown)
	require.LessOrEqual(t, float64(read), spent.Seconds()+20)
	require.Equal(t, http.StatusOK, p.get("/").status)
}

// A change comes into an open page in place: the scroll position and an open detail stay.
func TestAnOpenPageChangesInPlace(t *testing.T) {
	s := open(t)
	b := s.browser()
	b.start()
	b.visit("/")
	js[bool](b, `window.before = true`)
	s.Until("the page is live", func() bool { return js[bool](b, `!!document.querySelector(".side .live")?.textContent`) })
	js[bool](b, `(document.querySelector("#needs details").open = true, scrollTo(0, 120), true)`)
	s.Exec(`select autopost.raise_alert('news', 'paused_channels', 'channels', '{"message": "2 channels are paused"}', '{}')`)
	s.Until("the alert is shown", func() bool { return js[bool](b, `document.querySelectorAll("#needs li").length === 3`) })
	require.True(t, js[bool](b, `window.before`), "the page was not loaded again")
	s.JSON(`select autopost.submit_post('news', 'in', 'api', '{"text": "A new post"}')`)
	b.visit("/posts")
	s.JSON(`select autopost.submit_post('news', 'in', 'api', '{"text": "Another new post"}')`)
	s.Until("the button says how many are new", func() bool { return js[string](b, `document.getElementById("more-rows").textContent`) == "Show 1 new" })
	require.NotContains(t, js[string](b, `document.getElementById("posts").innerText`), "Another new post", "rows do not appear automatically")
	require.Empty(t, b.said())
}

// shownAt is when the page came last.
func (f *followed) shownAt() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}
