package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/webhook"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// promised selects the events that docs/result-webhooks.md promises, by their action.
const promised = `select id::text from autopost.events where action in ('enqueue', 'ingress_dedup_dropped', 'dedup_suppressed', 'sent', 'retry_scheduled', 'validation_failed',
	'failed_permanent', 'dead_letter', 'unknown_outcome', 'channel_paused', 'channel_disabled', 'channel_enabled') order by 1`

// withResults is one whose result webhooks are tried again after half a second.
func withResults(t *testing.T, names ...string) *harness.Harness {
	t.Helper()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Exec(`update autopost.retry_policies set ladder_ms = '{500}', max_attempts = 1000 where platform = 'result_webhook'`)
	h.Exec(`update autopost.settings set value = '200' where key = 'webhook_poll_ms'`)
	ok(t, h, "credential", "bind", "old", "--platform", "webhook", "--secret-ref", "env:TEST_FIRST_KEY", because)
	ok(t, h, "credential", "bind", "new", "--platform", "webhook", "--secret-ref", "env:TEST_SECOND_KEY", because)
	for _, name := range names {
		require.NoError(t, h.World.Webhook.AddEndpoint(name, firstKey))
		ok(t, h, "webhook", "add", name, "--url", h.WorldURL+"/webhook/"+name, "--signing-ref", "old", because)
	}
	return h
}

// received are the ids that a receiver took, and how often the event of the least came.
func received(h *harness.Harness, name string) (ids []string, least int) {
	for _, e := range h.World.Webhook.Events(name) {
		if e.Type == "webhook.test" {
			continue
		}
		ids = append(ids, e.ID)
		if least == 0 || e.Copies < least {
			least = e.Copies
		}
	}
	slices.Sort(ids)
	return ids, least
}

const allReported = `select c.done_at > (select coalesce(max(e.ts), '-infinity') from autopost.events e where e.workspace_id = $1) and not exists (
	select 1 from autopost.webhook_sends s where s.workspace_id = $1 and s.status not in ('delivered', 'dead'))
	from autopost.webhook_cursors c where c.workspace_id = $1`

// Each promised event is reported at least once under its id, though the receiver is down, flaps and
// loses answers, the key changes and the daemon is killed. A replay reports the same again.
func TestResultsReachTheirReceiver(t *testing.T) {
	t.Parallel()
	h := withResults(t, "results")
	h.Exec(`update autopost.settings set value = '1' where key = 'webhook_overlap_seconds'`)
	h.Exec(`update autopost.result_webhooks set timeout_seconds = 1`)
	for _, c := range []harness.Channel{
		{ID: "tg-1", Platform: harness.Telegram, Parallel: 2}, {ID: "tg-2", Platform: harness.Telegram}, {ID: "max-1", Platform: harness.MAX, Parallel: 2}, {ID: "max-2", Platform: harness.MAX},
	} {
		chat := h.Channel("news", c)
		switch c.ID {
		case "tg-2":
			h.Fault(sim.Fault{Platform: c.Platform, Chat: chat, From: 3, To: 4, Effect: sim.EffectStatus, Status: 400, Description: "Bad Request: message is too long"})
		case "max-2":
			h.Fault(sim.Fault{Platform: c.Platform, Chat: chat, From: 2, To: 4, Effect: sim.EffectStatus, Status: 503, Code: "service.unavailable"})
		}
	}
	for _, f := range []sim.Fault{
		{To: 12, Effect: sim.EffectStatus, Status: 503}, {From: 10, To: 14, Effect: sim.EffectAcceptThenDrop},
		{From: 20, To: 22, Effect: sim.EffectReset}, {From: 30, To: 31, Effect: sim.EffectStatus, Status: 429, RetryAfter: 1}, {From: 15, To: 17, Effect: sim.EffectGarbage},
	} {
		f.Platform, f.Chat = webhook.Platform, "results"
		h.Fault(f)
	}
	h.Fault(sim.Fault{Platform: webhook.Platform, Chat: "results", Effect: sim.EffectSlow, DelayMS: 30})

	lives := []string{"TEST_FIRST_KEY=" + firstKey, "TEST_SECOND_KEY=" + secondKey, "SENDING_LEASE_SECONDS=8", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=4000"}
	d := h.Serve(lives...)
	for n := range 10 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
	}
	h.Push(d, "secret-cms", harness.Post("text", "Post 1"))
	h.Until("something was reported", func() bool { return len(h.World.Webhook.Events("results")) > 8 })
	d.Kill()
	ok(t, h, "webhook", "set", "results", "--signing-ref", "new", because)
	d = h.Serve(lives...)
	for n := range 15 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", 10+n)))
	}
	require.NoError(t, h.World.Webhook.AddEndpoint("results", secondKey), "the receiver changes over while both keys sign")
	h.Drained("news")
	h.UntilTrue(allReported, "news")

	want := pgtest.Column[string](h.DB, promised)
	completed := pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages`)
	require.Equal(t, 25, completed)
	ids, _ := received(h, "results")
	types := map[string]int{}
	for _, e := range h.World.Webhook.Events("results") {
		types[e.Type]++
		if e.Type == "post.completed" {
			want = append(want, e.ID)
		}
		require.False(t, strings.Contains(string(e.Body), "Post "), "no text of a post")
	}
	slices.Sort(want)
	require.Equal(t, want, ids)
	require.Equal(t, completed, types["post.completed"], "%v", types)
	require.Equal(t, 100, types["delivery.sent"]+types["delivery.failed_permanent"], "%v", types)
	require.Positive(t, types["delivery.retry"])
	require.Equal(t, 1, types["post.duplicate"])
	for _, e := range h.Sends(sim.Filter{Platform: webhook.Platform}) {
		require.NotEqual(t, 401, e.Status, "signed by a key that the receiver has: %s", e.Reason)
		require.NotContains(t, e.Notes, "and its body was another")
	}

	before := map[string]int{}
	for _, e := range h.World.Webhook.Events("results") {
		before[e.ID] = e.Copies
	}
	require.Contains(t, ok(t, h, "webhook", "replay", "results", "--since", "2020-01-01T00:00:00Z", because), fmt.Sprint("queued: ", len(ids)))
	h.UntilTrue(allReported, "news")
	again, _ := received(h, "results")
	require.Equal(t, ids, again)
	for _, e := range h.World.Webhook.Events("results") {
		require.Greater(t, e.Copies, before[e.ID], "%s %s", e.Type, e.ID)
	}
	require.Contains(t, ok(t, h, "webhook", "replay", "results", "--event", ids[0], "--event", ids[1], because), "queued: 2")
	require.Equal(t, 1, h.Run(nil, "webhook", "replay", "results", "--since", "2020-01-01T00:00:00Z", "--failed-only", because).Code, "nothing had failed")
	for _, key := range []string{firstKey, secondKey} {
		require.NotContains(t, d.Log(), key)
	}
	h.Verified()
}

// A test prints the answer. A receiver that is gone is disabled with an alert. When it is enabled
// again, it gets all that waited.
func TestWebhookThatIsTriedByHandAndGoes(t *testing.T) {
	t.Parallel()
	h := withResults(t, "crm")
	d := h.Serve("TEST_FIRST_KEY="+firstKey, "TEST_SECOND_KEY="+secondKey)
	require.Regexp(t, `^event \S+ was accepted: HTTP 204\n$`, ok(t, h, "webhook", "test", "crm", because))
	h.World.Webhook.SetStatus("crm", 500)
	failed := h.Run(nil, "webhook", "test", "crm", because)
	require.Equal(t, 1, failed.Code)
	require.Contains(t, failed.Stderr, "was not accepted: 500 Internal Server Error")
	require.Len(t, h.Sends(sim.Filter{Chat: "crm"}), 2, "a test is tried once")
	ok(t, h, "webhook", "set", "crm", "--url", "http://10.0.0.7/inside", because)
	require.Contains(t, h.Run(nil, "webhook", "test", "crm", because).Stderr, "address is not allowed", "nothing inside is reached")

	ok(t, h, "webhook", "set", "crm", "--url", h.WorldURL+"/webhook/crm", because)
	h.World.Webhook.SetStatus("crm", 500)
	h.Channel("news", harness.Channel{ID: "tg", Platform: harness.Telegram})
	h.Push(d, "secret-cms", harness.Post("text", "Hello"))
	// Only a replay reports events of the disabled time, so all events are queued before.
	h.UntilTrue(`select count(*) = 3 from autopost.webhook_sends where event_type <> 'webhook.test' and attempt > 0`)
	h.World.Webhook.SetStatus("crm", 410)
	h.UntilTrue(`select not enabled and disabled_reason = 'gone' from autopost.result_webhooks`)
	h.UntilTrue(`select count(*) = 1 from autopost.alerts where kind = 'webhook_disabled' and subject = 'webhook:crm' and ended_at is null`)
	require.Contains(t, ok(t, h, "webhook", "list"), "gone")
	require.Equal(t, 1, h.Run(nil, "webhook", "test", "crm", because).Code)
	refused := len(h.Sends(sim.Filter{Chat: "crm"}))

	h.World.Webhook.SetStatus("crm", 0)
	ok(t, h, "webhook", "set", "crm", "--enabled=true", because)
	h.Until("the rest is reported", func() bool { ids, _ := received(h, "crm"); return len(ids) >= 2 })
	require.Greater(t, len(h.Sends(sim.Filter{Chat: "crm"})), refused)
	// Outcomes are committed together, some time after their calls.
	h.UntilTrue(`select count(*) >= 3 from autopost.webhook_sends where status = 'delivered'`)
	shown := items[struct{ Status string }](t, ok(t, h, "webhook", "deliveries", "crm", "--status", "delivered", "--json"))
	require.GreaterOrEqual(t, len(shown), 3)
	require.Contains(t, ok(t, h, "webhook", "show", "crm"), "/webhook/crm")
	require.Contains(t, ok(t, h, "webhook", "remove", "crm", because), "removed")
	require.Equal(t, 2, h.Run(nil, "webhook", "replay", "crm", because).Code)
}

// A receiver that answers slowly, and one that does not answer, delay no other.
func TestSlowReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	h := withResults(t, "quick", "slow", "silent")
	h.Exec(`update autopost.settings set value = '1' where key = 'webhook_overlap_seconds'`)
	h.Exec(`update autopost.result_webhooks set rps = 1000`)
	h.Fault(sim.Fault{Platform: webhook.Platform, Chat: "slow", Effect: sim.EffectSlow, DelayMS: 2000})
	h.Fault(sim.Fault{Platform: webhook.Platform, Chat: "silent", Effect: sim.EffectHang})
	h.Channel("news", harness.Channel{ID: "tg", Platform: harness.Telegram, Parallel: 4})
	d := h.Serve("TEST_FIRST_KEY="+firstKey, "TEST_SECOND_KEY="+secondKey)
	for n := range 60 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
	}
	h.Drained("news")
	h.Until("the quick receiver has all", func() bool { ids, _ := received(h, "quick"); return len(ids) == 180 })
	slow, _ := received(h, "slow")
	require.Less(t, len(slow), 120, "the slow one is behind by now")
	var waits []time.Duration
	for _, e := range h.World.Webhook.Events("quick") {
		var body struct{ Timestamp time.Time }
		require.NoError(t, json.Unmarshal(e.Body, &body))
		waits = append(waits, e.Received.Sub(body.Timestamp))
	}
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	t.Logf("from event to receiver: p50 %s, p99 %s", waits[len(waits)/2], p99)
	calls := h.Sends(sim.Filter{Chat: "slow"})
	for _, e := range calls {
		var at int
		for _, other := range calls {
			if !other.Start.After(e.Start) && (other.End.IsZero() || other.End.After(e.Start.Add(epsilon))) {
				at++
			}
		}
		require.LessOrEqual(t, at, 4, "no more at a time than it has places")
	}
	require.LessOrEqual(t, len(h.Sends(sim.Filter{Chat: "silent"})), 12)
}
