package crash

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/test/house"
)

// nobodyCallsAfterItsLease fails the test unless every call began within the lease
// of an attempt whose start was committed before.
func nobodyCallsAfterItsLease(t *testing.T, h *house.House, workspace string, lease time.Duration) {
	t.Helper()
	starts := map[house.Place][]time.Time{}
	for _, row := range pgtest.Column[map[string]any](h.DB, `
		select jsonb_build_object('platform', c.platform, 'chat', c.target_id, 'text', d.rendered_text, 'at', extract(epoch from e.ts))
		from autopost.events e
		join autopost.deliveries d on d.workspace_id = e.workspace_id and d.delivery_id = e.delivery_id
		join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id
		where e.workspace_id = $1 and e.action = 'send_attempt'`, workspace) {
		place := house.Place{Platform: row["platform"].(string), Chat: row["chat"].(string), Text: row["text"].(string)}
		starts[place] = append(starts[place], time.UnixMicro(int64(row["at"].(float64)*1e6)))
	}
	for _, e := range h.Sends() {
		inside := func(at time.Time) bool { return !e.Start.Before(at) && e.Start.Before(at.Add(lease)) }
		if e.Text != "" && !slices.ContainsFunc(starts[house.Place{Platform: e.Platform, Chat: e.Chat, Text: e.Text}], inside) {
			t.Errorf("a call began at %s, starts were recorded at %v", e.Start, starts[house.Place{Platform: e.Platform, Chat: e.Chat, Text: e.Text}])
		}
	}
}

// A daemon is stopped as a suspended machine is, for longer than its leases, in the
// middle of sending; another goes on with its work. When it wakes it begins nothing
// that is no longer its own, and nobody gets a copy too many.
func TestDaemonThatSleptThroughItsLeases(t *testing.T) {
	h := house.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for n := range 6 {
		h.Channel("news", house.Channel{ID: fmt.Sprint("t", n), Platform: house.Telegram})
	}
	h.Fault(sim.Fault{Platform: house.Telegram, Effect: sim.EffectSlow, DelayMS: 300})
	sleeper := h.Serve(quick...)
	other := h.Serve(quick...)
	began := time.Now()
	for cycle := range 2 {
		for n := range 8 {
			h.Push(other, "secret-cms", house.Post("text", fmt.Sprintf("Post %d of cycle %d", n, cycle)))
		}
		require.NoError(t, syscall.Kill(sleeper.PID(), syscall.SIGSTOP))
		asleep := time.Now()
		h.Until("the leases are over", 30*time.Second, func() bool { return time.Since(asleep) > 6*time.Second })
		require.NoError(t, syscall.Kill(sleeper.PID(), syscall.SIGCONT))
	}
	h.Drained("news")
	toll := h.Judge("news")
	nobodyCallsAfterItsLease(t, h, "news", 4*time.Second)
	require.Equal(t, 96, toll.Sent+toll.Failed, "what it slept over twice is given up")
	t.Logf("%d deliveries, %d copies more than one, in %s", toll.Deliveries, toll.Extra, time.Since(began).Round(time.Second))
	h.Verified()
}

// The database goes away under load and comes back: nothing that was acknowledged is
// lost, nobody is called meanwhile, and posts flow again within seconds.
func TestDatabaseThatIsRestartedUnderLoad(t *testing.T) {
	h := house.New(t, house.WithItsOwnServer)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	const channels = 5
	for n := range channels {
		h.Channel("news", house.Channel{ID: fmt.Sprint("t", n), Platform: house.Telegram})
	}
	d := h.Serve()
	s := newSource(h, d)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	all := s.pushAll(ctx, 0, 150)
	h.Until("the load is on", 30*time.Second, func() bool { return len(h.Accepted()) > 50 })
	h.StopServer()
	down := time.Now()
	settled := func() bool { return time.Since(down) > 2*time.Second } // calls that had begun are over
	h.Until("two seconds have passed", 10*time.Second, settled)
	quiet := len(h.Sends())
	h.Until("four seconds have passed", 10*time.Second, func() bool { return time.Since(down) > 4*time.Second })
	require.Len(t, h.Sends(), quiet, "nobody is called without the database")
	answer, err := h.TryPush(d.URL, "secret-cms", house.Post("text", "nobody can take this"))
	require.NoError(t, err)
	require.Equal(t, 503, answer.Status)
	h.StartServer()
	up := time.Now()
	h.Until("posts flow again", 30*time.Second, func() bool { return len(h.Accepted()) > quiet })
	back := time.Since(up)
	require.Less(t, back, 5*time.Second)
	s.wait(all)
	h.Drained("news")
	toll := h.Judge("news")
	require.Equal(t, 150*channels, toll.Sent)
	t.Logf("flow was back after %s; %d deliveries, %d copies more than one", back.Round(time.Millisecond), toll.Deliveries, toll.Extra)
	h.Verified()
}
