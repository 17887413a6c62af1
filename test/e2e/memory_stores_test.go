package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/s3test"
	"autopost/test/harness"
)

// Answers of an object store and of a token endpoint have budgets too: the daemon reads the worst small ones, and the head of huge ones.
func TestMemoryOfStoresAndTokenEndpoints(t *testing.T) {
	t.Parallel()
	budgets := memoryBudgets(t)
	h, _, _ := newsroom(t)
	blobs, _ := s3test.Start(t)
	at, err := url.Parse(blobs)
	require.NoError(t, err)
	endpoint, err := url.Parse(at.Query().Get("endpoint"))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(endpoint)
	lists := &liar{next: proxy}
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	lists.answer.Store(&refuse) // the monitor lists once an hour, and again at once after a failure
	store := &liar{next: proxy}
	storeServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("list-type") {
			lists.ServeHTTP(w, r)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(storeServer.Close)
	tokens := &liar{next: http.NotFoundHandler()}
	tokenServer := httptest.NewServer(tokens)
	t.Cleanup(tokenServer.Close)
	require.Zero(t, h.RunWithInput(`{"client_id": "c", "client_secret": "s", "access_token": "a", "refresh_token": "r"}`, "credential", "set", "x", "--platform", "x", because).Code)
	d := h.Serve(append([]string{"AUTOPOST_BLOB_URL=" + strings.ReplaceAll(blobs, endpoint.Host, strings.TrimPrefix(storeServer.URL, "http://")),
		"AUTOPOST_X_API_URL=" + tokenServer.URL, "MONITOR_INTERVAL_SECONDS=1"}, s3test.Environment...)...)
	h.Push(d, "secret-cms", harness.Post("text", "The first post"))
	h.Drained("news")
	measure := func(input, name string, of *liar, answer http.HandlerFunc, run func(asked func() bool)) {
		before, already := harness.Anonymous(d.PID()), of.asked.Load()
		watched := harness.WatchMemory(d.PID())
		of.answer.Store(&answer)
		run(func() bool { return of.asked.Load() > already })
		of.answer.Store(nil)
		grown := watched.End() - before
		t.Logf("%s, %s: %d MB", input, name, grown>>20)
		require.LessOrEqual(t, grown, budgets[input], "%s, %s: %d MB; docs/operate/memory.md", input, name, grown>>20)
	}
	measure("answer of an object store", "a list", lists, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprint(w, `<ListBucketResult>`, strings.Repeat(`<Contents/>`, 90_000), `</ListBucketResult>`)
	}, func(func() bool) {
		seen := lists.asked.Load()
		h.Until("the monitor has read a list and asks again", func() bool { return lists.asked.Load() > seen+1 })
	})
	all := answers()
	all["an error"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		for range 1 << 10 {
			fmt.Fprint(w, strings.Repeat("<Error>", 1<<13))
		}
	}
	for name, answer := range all {
		if !pgtest.Long() && name != "compressed" && name != "an error" {
			continue
		}
		h.Exec(`update autopost.submissions set status = 'failed' where status in ('new', 'fetching')`)
		measure("answer of an object store", name, store, answer, func(asked func() bool) {
			h.Push(d, "secret-cms", harness.Post("text", "Stored: "+name, "media", picture(h, "photo-1.png")))
			h.Until("the store is asked", asked)
			h.UntilTrue(`select not exists (select 1 from autopost.submissions where status = 'new' or claim_token is not null)`)
		})
		measure("answer of a token endpoint", name, tokens, answer, func(asked func() bool) {
			h.Exec(`update autopost.credential_health set failures = 0, lost_at = null, lost_version = null, valid_until = now() + interval '1 minute', next_refresh_at = now() where auth_ref = 'x'`)
			h.Until("the endpoint is asked", asked)
			h.Until("the renewal ended", func() bool {
				return pgtest.Value[bool](h.DB, `select lease_token is null from autopost.credential_health where auth_ref = 'x'`)
			})
		})
	}
}
