package crash

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// requireCallsWithinLeases fails the test unless every call began after its start record and within the
// lease of its attempt.
func requireCallsWithinLeases(t *testing.T, h *harness.Harness, workspace string, lease time.Duration) {
	t.Helper()
	starts := map[harness.Text][]time.Time{}
	for _, row := range pgtest.Column[map[string]any](h.DB, `
		select jsonb_build_object('platform', c.platform, 'chat', c.target_id, 'text', d.rendered_text, 'at', extract(epoch from e.ts))
		from autopost.events e
		join autopost.deliveries d on d.workspace_id = e.workspace_id and d.delivery_id = e.delivery_id
		join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id
		where e.workspace_id = $1 and e.action = 'send_attempt'`, workspace) {
		place := harness.Text{Platform: row["platform"].(string), Chat: row["chat"].(string), Text: row["text"].(string)}
		starts[place] = append(starts[place], time.UnixMicro(int64(row["at"].(float64)*1e6)))
	}
	for _, e := range h.Sends() {
		inside := func(at time.Time) bool { return !e.Start.Before(at) && e.Start.Before(at.Add(lease)) }
		if e.Text != "" && !slices.ContainsFunc(starts[harness.Text{Platform: e.Platform, Chat: e.Chat, Text: e.Text}], inside) {
			t.Errorf("a call began at %s, starts were recorded at %v", e.Start, starts[harness.Text{Platform: e.Platform, Chat: e.Chat, Text: e.Text}])
		}
	}
}

// A daemon is suspended while it sends, for longer than its leases, and another one continues. After it
// wakes it starts no call of a lost claim.
func TestDaemonThatSleptThroughItsLeases(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithConnections(8))
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for n := range 6 {
		h.Channel("news", harness.Channel{ID: fmt.Sprint("t", n), Platform: harness.Telegram})
	}
	h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectSlow, DelayMS: 300})
	sleeper := h.Serve(quick...)
	other := h.Serve(quick...)
	began := time.Now()
	for cycle := range 2 {
		for n := range 8 {
			h.Push(other, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d of cycle %d", n, cycle)))
		}
		require.NoError(t, syscall.Kill(sleeper.PID(), syscall.SIGSTOP))
		asleep := time.Now()
		h.Until("the leases are over", func() bool { return time.Since(asleep) > 6*time.Second })
		require.NoError(t, syscall.Kill(sleeper.PID(), syscall.SIGCONT))
	}
	h.Drained("news")
	totals := h.Judge("news")
	requireCallsWithinLeases(t, h, "news", 4*time.Second)
	require.Equal(t, 96, totals.Sent+totals.Failed, "what it slept over twice is given up")
	t.Logf("%d deliveries, %d copies more than one, in %s", totals.Deliveries, totals.Extra, time.Since(began).Round(time.Second))
	h.Verified()
}

// The database stops under load and starts again. No acknowledged post is lost, no platform is called
// in between, and sending continues.
func TestDatabaseThatIsRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithOwnServer)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	const channels = 5
	for n := range channels {
		h.Channel("news", harness.Channel{ID: fmt.Sprint("t", n), Platform: harness.Telegram})
	}
	d := h.Serve()
	s := newSource(h, d)
	all := s.pushAll(t.Context(), 0, 150)
	h.Until("the load is on", func() bool { return len(h.Accepted()) > 50 })
	h.StopServer()
	h.Until("the daemon is not ready, and its calls have ended", func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == 503 && !slices.ContainsFunc(h.Sends(), func(e sim.Entry) bool { return e.End.IsZero() })
	})
	quiet, down := len(h.Sends()), time.Now()
	h.Until("two seconds have passed", func() bool { return time.Since(down) > 2*time.Second })
	require.Len(t, h.Sends(), quiet, "nobody is called without the database")
	answer, err := h.TryPush(d.URL, "secret-cms", harness.Post("text", "nobody can take this"))
	require.NoError(t, err)
	require.Equal(t, 503, answer.Status)
	h.StartServer()
	up := time.Now()
	h.Until("posts flow again", func() bool { return len(h.Accepted()) > quiet })
	back := time.Since(up)
	s.wait(all)
	h.Drained("news")
	totals := h.Judge("news")
	require.Equal(t, 150*channels, totals.Sent)
	t.Logf("flow was back after %s; %d deliveries, %d copies more than one", back.Round(time.Millisecond), totals.Deliveries, totals.Extra)
	h.Verified()
}
