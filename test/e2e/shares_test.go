package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// arrivals pushes posts to the workspace quiet, one after another, and returns how long each
// took from the answer to its push until its call, the longest last.
func arrivals(h *harness.Harness, d *harness.Daemon, chat, name string, posts int) []time.Duration {
	took := make([]time.Duration, 0, posts)
	for n := range posts {
		before := len(h.Sends(sim.Filter{Chat: chat}))
		h.Push(d, "secret-quiet", harness.Post("text", fmt.Sprintf("%s %d", name, n)))
		answered := time.Now()
		var sends []sim.Entry
		h.Until("the post arrives", func() bool {
			sends = h.Sends(sim.Filter{Chat: chat})
			return len(sends) > before
		})
		took = append(took, sends[before].Start.Sub(answered))
	}
	slices.Sort(took)
	return took
}

// While one platform never answers and one workspace has a queue of hours, the posts
// of another go out as before.
func TestNobodyElseWaitsForADeadPlatformOrALongQueue(t *testing.T) {
	t.Parallel()
	const posts = 20
	for name, trouble := range map[string]func(h *harness.Harness, d *harness.Daemon){
		"a dead platform": func(h *harness.Harness, d *harness.Daemon) {
			h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectHang})
			for n := range 4 {
				h.Push(d, "secret-loud", harness.Post("text", fmt.Sprint("Nobody answers ", n)))
			}
			h.Until("calls hang", func() bool { return len(h.Sends(sim.Filter{Platform: harness.Telegram})) >= 10 })
		},
		"a long queue": func(h *harness.Harness, d *harness.Daemon) {
			h.GroupRate("loud", harness.Telegram, harness.Telegram, 15)
			for n := range 40 { // 1600 deliveries, for 106 seconds
				h.Push(d, "secret-loud", harness.Post("text", fmt.Sprint("One of very many ", n)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			h.Workspace("loud")
			h.Endpoint("loud", "cms", "secret-loud")
			for n := range 40 {
				h.Channel("loud", harness.Channel{ID: fmt.Sprint("t", n), Platform: harness.Telegram})
			}
			h.Workspace("quiet")
			h.Endpoint("quiet", "cms", "secret-quiet")
			chat := h.Channel("quiet", harness.Channel{ID: "m", Platform: harness.MAX})
			d := h.Serve("DISPATCHER_SENDERS=24", "ADAPTER_TIMEOUT_MS=140000")
			alone := arrivals(h, d, chat, "alone", posts)
			trouble(h, d)
			meanwhile := arrivals(h, d, chat, "meanwhile", posts)
			t.Logf("median and most: alone %s, %s; meanwhile %s, %s", alone[posts/2], alone[posts-1], meanwhile[posts/2], meanwhile[posts-1])
			busy := func() bool { // the dead calls go on, or the long queue does
				hanging := slices.ContainsFunc(h.Sends(sim.Filter{Platform: harness.Telegram}), func(e sim.Entry) bool { return e.End.IsZero() })
				return hanging || pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.deliveries where workspace_id = 'loud' and status = 'queued')`)
			}
			require.True(t, busy(), "the posts did not wait for the others")
		})
	}
}
