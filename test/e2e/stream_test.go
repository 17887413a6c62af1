package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

// keyed makes an API key whose secret is its name.
func keyed(h *harness.Harness, workspace, name, role string) string {
	h.Exec(`select autopost.create_api_key($1, jsonb_build_object('name', $2::text, 'role', $3::text), encode(sha256($2::bytea), 'hex'), 'ann', 'r')`, workspace, name, role)
	return name
}

// moderated has a workspace whose posts wait for a decision, and a rival.
func moderatedNews(t *testing.T) *harness.Harness {
	t.Helper()
	h := harness.New(t)
	for _, workspace := range []string{"news", "rival"} {
		h.Workspace(workspace)
		h.Endpoint(workspace, "cms", "secret-"+workspace)
		h.Channel(workspace, harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	}
	h.Exec(`update autopost.workspace_endpoints set moderated = true where workspace_id = 'news'`)
	return h
}

// A decision through the API or a command is visible to every reader within two seconds: on the streams of other people,
// in lists, and by metrics. It takes no NOTIFY, and it works behind PgBouncer.
func TestDecisionsAreVisibleToEveryReader(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string]func(*testing.T, *harness.Harness) []string{
		"NOTIFY": func(*testing.T, *harness.Harness) []string { return nil },
		"polling behind PgBouncer": func(t *testing.T, h *harness.Harness) []string {
			return []string{"DATABASE_URL=" + pgtest.PgBouncer(t, h.URL("engine"), 4), "AUTOPOST_LISTEN_URL=" + pgtest.New(t).URL("engine")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := moderatedNews(t)
			d := h.Serve(environment(t, h)...)
			viewer, approver, other := keyed(h, "news", "viewer", "viewer"), keyed(h, "news", "approver", "approver"), keyed(h, "rival", "other", "viewer")
			stream, foreign := h.Follow(d, viewer, ""), h.Follow(d, other, "")
			require.Equal(t, http.StatusOK, stream.Status)
			stream.Await("reset", nil)
			foreign.Await("reset", nil)
			var late []time.Duration
			for n, way := range []string{"approve by API", "reject by API", "approve by command", "reject by command"} {
				answer := h.Push(d, "secret-news", harness.Post("text", fmt.Sprint("Post ", n)))
				id := answer.Text("submission_id")
				stream.Await("submission", map[string]any{"submission_id": id, "status": "pending"})
				decision, status := "approve", "enqueued"
				if n%2 == 1 {
					decision, status = "reject", "rejected"
				}
				began := time.Now()
				if n < 2 {
					decided := h.API(d, http.MethodPost, "/api/v1/submissions/"+id+"/"+decision, approver, `{"reason": "seen"}`)
					require.Equal(t, http.StatusOK, decided.Status, decided.Body)
				} else {
					result := h.Run(nil, "moderation", decision, id, "--workspace", "news", "--reason", "seen")
					require.Zero(t, result.Code, result.Stderr)
				}
				decidedAt := time.Now()
				event := stream.Await("submission", map[string]any{"submission_id": id, "status": status, "decision": decision})
				late = append(late, max(0, event.At.Sub(decidedAt)))
				listed := h.API(d, http.MethodGet, "/api/v1/submissions/"+id, viewer, "")
				require.Equal(t, status, listed.Text("status"))
				t.Logf("%s: decided after %s, on the stream %s later", way, decidedAt.Sub(began).Round(time.Millisecond), late[n].Round(time.Millisecond))
			}
			require.Less(t, slices.Min(late), 2*time.Second)
			require.Zero(t, h.Metrics(d.URL)[`autopost_submissions{status="pending"}`])
			stream.Await("delivery", map[string]any{"status": "sent"})
			for n, event := range foreign.Events() { // the changes that made its key
				require.Contains(t, []string{"reset", "change"}, event.Kind, "%d: nothing of another workspace", n)
			}
			h.Exec(`select autopost.raise_alert('news', 'orphans', 'test', '{}', '{}')`)
			alert := stream.Await("alert", map[string]any{"subject": "test", "state": "open"})

			// A stream continues where the reader lost it. A key that ends takes its streams along.
			last := alert.ID
			stream.Close()
			h.Exec(`select autopost.raise_alert('news', 'orphans', 'again', '{}', '{}')`)
			stream = h.Follow(d, viewer, last)
			stream.Await("alert", map[string]any{"subject": "again"})
			require.NotEqual(t, "reset", stream.Events()[0].Kind)
			h.Exec(`update autopost.api_keys set enabled = false where workspace_id = 'news' and name = 'viewer'`)
			require.True(t, wait.Closed(stream.Over()))
			require.Equal(t, http.StatusUnauthorized, h.Follow(d, viewer, last).Status)
			require.Zero(t, d.Stop(), "open streams do not delay the end")
		})
	}
}

// Two hundred open streams cost the database one query a second at most, and a few megabytes of memory. One key may not
// have all of them.
func TestManyStreamsCostOneQueryASecond(t *testing.T) {
	t.Parallel()
	h := moderatedNews(t)
	d := h.Serve()
	var streams []*harness.Stream
	for n := range 200 {
		if n%50 == 0 {
			keyed(h, "news", fmt.Sprint("key", n/50), "viewer")
		}
		streams = append(streams, h.Follow(d, fmt.Sprint("key", n/50), ""))
		require.Equal(t, http.StatusOK, streams[n].Status)
	}
	keyed(h, "news", "fresh", "viewer")
	require.Equal(t, http.StatusTooManyRequests, h.Follow(d, "key0", "").Status, "one more of a key")
	require.Equal(t, http.StatusTooManyRequests, h.Follow(d, "fresh", "").Status, "one more of the workspace")
	for _, stream := range streams {
		stream.Await("reset", nil)
	}
	reads := func() float64 { return h.Metrics(d.URL)[`autopost_database_seconds_count{function="stream_items"}`] }
	began, before := time.Now(), reads()
	require.Positive(t, before)
	for n := range 4 { // each wakes the hub
		h.Push(d, "secret-news", harness.Post("text", fmt.Sprint("Post ", n)))
		h.Until("the next read", func() bool { return reads() > before+float64(n) })
	}
	require.LessOrEqual(t, reads()-before, time.Since(began).Seconds()+1)
	for _, stream := range streams {
		stream.Await("submission", map[string]any{"status": "pending"})
	}
	require.Zero(t, d.Stop())
}
