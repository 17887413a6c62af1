package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Fifty callers make the same write at once. It is done once, and all answers are equal, byte for byte.
func TestRepeatsGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	w := open(t)
	counts := map[string]string{
		"submit-post":   `select count(*)::int from autopost.ingest_runs where workspace_id = 'acme' and kind = 'api' and stats_json ->> 'enqueued' = '2' and run_id > $1::uuid`,
		"pause-channel": `select count(*)::int from autopost.admin_audit_log where workspace_id = 'acme' and action = 'pause_channel' and $1 <> ''`,
		"upload-media":  `select count(*)::int from autopost.media_origin where workspace_id = 'acme' and blob_ref <> '` + w.ids["acme"]["blob_ref"] + `' and $1 <> ''`,
		"proxy-media":   `select count(*)::int from autopost.admin_audit_log where workspace_id = 'acme' and action = 'record_upload' and $1 <> ''`,
	}
	for _, o := range w.operations {
		count, judged := counts[o.ID]
		if !judged {
			continue
		}
		c := w.request(o, "acme")
		c.key = w.keys["operator"]
		if c.header == nil {
			c.header = map[string]string{}
		}
		c.header["Idempotency-Key"] = "repeat-" + o.ID
		var mu sync.Mutex
		bodies, replayed := map[string]int{}, 0
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				for {
					r, err := w.try(c)
					if err != nil {
						t.Error(err)
						return
					}
					if r.status == http.StatusConflict || r.status == http.StatusTooManyRequests {
						if r.header.Get("Retry-After") == "" {
							t.Errorf("%s: come again, but when?", o.ID)
						}
						continue
					}
					mu.Lock()
					defer mu.Unlock()
					bodies[strconv.Itoa(r.status)+r.raw]++
					if r.header.Get("Idempotent-Replayed") == "true" {
						replayed++
					}
					return
				}
			})
		}
		callers.Wait()
		require.Len(t, bodies, 1, o.ID)
		require.Equal(t, 49, replayed, o.ID)
		require.Equal(t, 1, pgtest.Value[int](w.DB, count, w.ids["acme"]["run_id"]), o.ID)
	}
	_, contents := w.handed(harness.MAX)
	require.Len(t, contents, 1, "the platform was given the medium once")
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	w := open(t)
	at := "/api/v1/channels/" + w.ids["acme"]["channels"] + "/pause"
	ask := func(key, path, body, once string) reply {
		return w.ask(call{method: http.MethodPost, path: path, key: key, body: body, header: map[string]string{"Idempotency-Key": once}})
	}
	own, other := w.keys["operator"], w.keys["owner"]
	first := ask(own, at, `{"seconds": 60, "reason": "r"}`, "one")
	require.Equal(t, 200, first.status, first.raw)
	again := ask(own, at, `{"seconds": 60, "reason": "r"}`, "one")
	require.Equal(t, first.raw, again.raw)
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))

	for name, r := range map[string]reply{
		"another body":   ask(own, at, `{"seconds": 61, "reason": "r"}`, "one"),
		"another path":   ask(own, "/api/v1/channels/"+w.ids["acme"]["channels"]+"/resume", `{"reason": "r"}`, "one"),
		"another reason": w.ask(call{method: http.MethodPost, path: at, key: own, body: `{"seconds": 60, "reason": "r"}`, header: map[string]string{"Idempotency-Key": "one", "X-Autopost-Reason": "s"}}),
	} {
		require.Equal(t, []string{"header.Idempotency-Key"}, r.problem(t, 422), name)
		require.Contains(t, r.body["detail"], "another request", name)
	}
	require.NotEqual(t, first.raw, ask(other, at, `{"seconds": 60, "reason": "r"}`, "one").raw, "a key of the API has its own")

	// A dry run is not kept: what follows it under the same key is done.
	require.Equal(t, 200, ask(own, at+"?dry_run=true", `{"seconds": 5, "reason": "r"}`, "two").status)
	done := ask(own, at, `{"seconds": 5, "reason": "r"}`, "two")
	require.Equal(t, 200, done.status, done.raw)
	require.Equal(t, false, done.body["dry_run"])

	// A refused request is not kept either: nothing was done.
	ask(own, at, `{"seconds": 5}`, "three").problem(t, 422)
	require.Equal(t, 200, ask(own, at, `{"seconds": 5, "reason": "r"}`, "three").status)

	// Its time over, a key is fresh again.
	w.Exec(`update autopost.api_requests set expires_at = now()`)
	fresh := ask(own, at, `{"seconds": 61, "reason": "r"}`, "one")
	require.Equal(t, 200, fresh.status, fresh.raw)
	require.Empty(t, fresh.header.Get("Idempotent-Replayed"))
}

// A post and its answer are stored in one transaction. After a crash between them neither exists, and the retry enqueues
// the post once.
func TestCrashBetweenWriteAndAnswerLeavesNeither(t *testing.T) {
	t.Parallel()
	w := open(t)
	post := call{method: http.MethodPost, path: "/api/v1/posts", key: w.keys["editor"], body: `{"text": "once"}`, header: map[string]string{"Idempotency-Key": "p"}}
	// The database refuses to keep the answer, after the act: as it would be if it died there.
	w.Exec(`alter table autopost.api_requests add constraint crash check (idempotency_key <> 'p') not valid`)
	require.Equal(t, 500, w.ask(post).status)
	seen := func() int {
		return pgtest.Value[int](w.DB, `select count(*)::int from autopost.deliveries where workspace_id = 'acme' and rendered_text = 'once'`)
	}
	require.Zero(t, seen())
	w.Exec(`alter table autopost.api_requests drop constraint crash`)
	first := w.ask(post)
	require.Equal(t, 202, first.status, first.raw)
	second := w.ask(post)
	require.Equal(t, first.raw, second.raw)
	require.Equal(t, 2, seen(), "once in each of two channels")
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(first.raw), &answer))
	require.Equal(t, answer["run_id"], second.body["run_id"])
}
