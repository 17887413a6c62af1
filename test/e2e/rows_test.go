package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// rarely stops the periodic search for lost wake-ups for the time of a test: only the change itself
// can start the work that the test waits for.
const rarely = "MONITOR_INTERVAL_SECONDS=3600"

// marked sends a post through a channel that is open and waits for it: whatever
// could have been sent by then had its chance.
func marked(t *testing.T, h *harness.Harness, d *harness.Daemon, text string) {
	t.Helper()
	require.Equal(t, 202, h.Push(d, "secret-marker", harness.Post("text", text)).Status)
	h.Until("the marker "+text+" arrives", func() bool {
		for place := range h.Copies() {
			if place.Text == text {
				return true
			}
		}
		return false
	})
}

func withMarker(h *harness.Harness) {
	h.Workspace("marker")
	h.Endpoint("marker", "entry", "secret-marker")
	h.Channel("marker", harness.Channel{ID: "open", Platform: harness.Telegram})
}

// A paused workspace takes posts and sends none; an active one sends what it took;
// a disabled one is as if it were not there.
func TestStatusOfAWorkspace(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	withMarker(h)
	d := h.Serve(rarely)
	h.Exec(`update autopost.workspaces set status = 'paused' where workspace_id = 'news'`)
	answer := h.Push(d, "secret-cms", harness.Post("text", "Patience"))
	require.Equal(t, 202, answer.Status)
	require.Equal(t, 2, answer.Number("enqueued"))
	marked(t, h, d, "while it is paused")
	marked(t, h, d, "and once more")
	require.Empty(t, h.Sends(sim.Filter{Chat: telegramChat}, sim.Filter{Chat: maxChat}))
	require.Equal(t, []string{"queued", "queued"}, pgtest.Column[string](h.DB, `select status from autopost.deliveries where workspace_id = 'news'`))

	h.Exec(`update autopost.workspaces set status = 'active' where workspace_id = 'news'`)
	h.Until("it is sent", func() bool { return len(h.Accepted(sim.Filter{Chat: telegramChat}, sim.Filter{Chat: maxChat})) == 2 })

	h.Exec(`update autopost.workspaces set status = 'disabled' where workspace_id = 'news'`)
	require.Equal(t, 401, h.Push(d, "secret-cms", harness.Post("text", "Anybody there?")).Status)
	h.Exec(`update autopost.workspaces set status = 'active' where workspace_id = 'news'`)
	require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", "Back again")).Status)
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: telegramChat}), 2)
}

// Rows edited by plain SQL act at once, without a restart.
func TestRowsActAtOnce(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	withMarker(h)
	d := h.Serve(rarely)
	h.Push(d, "secret-cms", harness.Post("text", "Before"))
	h.Drained("news")
	late := h.Channel("news", harness.Channel{ID: "late", Platform: harness.Telegram, Rate: 2})
	require.Equal(t, 3, h.Push(d, "secret-cms", harness.Post("text", "After")).Number("enqueued"))
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: late}), 1)
	require.Len(t, h.Accepted(sim.Filter{Chat: telegramChat}), 2)

	h.Exec(`update autopost.channels set rate_rps = 0.2 where channel_id = 'late'`)
	for n := range 6 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Queue ", n)))
	}
	h.Exec(`update autopost.channels set paused_until = 'infinity' where channel_id = 'late'`)
	h.UntilTrue(`select count(*) = 0 from autopost.deliveries where channel_id = 'late' and status = 'sending'`)
	before := len(h.Sends(sim.Filter{Chat: late}))
	marked(t, h, d, "while the channel is paused")
	h.Until("the others are done", func() bool { return len(h.Accepted(sim.Filter{Chat: maxChat})) == 8 })
	require.Len(t, h.Sends(sim.Filter{Chat: late}), before)
	require.Less(t, before, 7, "something still waits")

	h.Exec(`update autopost.channels set paused_until = null, rate_rps = 0 where workspace_id = 'news' and channel_id = 'late'`)
	h.Until("the channel has all", func() bool { return len(h.Accepted(sim.Filter{Chat: late})) == 7 })
	h.Drained("news")
	for place, copies := range h.Copies() {
		require.Equal(t, 1, copies, place)
	}
	h.Verified()
}
