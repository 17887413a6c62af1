package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A chat with a retry-after gets no call for that time; the others go on.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	h, limited, free := newsroom(t)
	h.Fault(sim.Fault{Platform: harness.Telegram, Chat: limited, To: 1, Effect: sim.EffectStatus, Status: 429, RetryAfter: 3})
	d := h.Serve()
	for n := range 3 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
	}
	h.Drained("news")
	sends := h.Sends(sim.Filter{Chat: limited})
	require.Len(t, sends, 4, "three posts, of which one twice")
	require.Equal(t, 429, sends[0].Status)
	require.GreaterOrEqual(t, sends[1].Start.Sub(sends[0].End), 3*time.Second)
	others := h.Accepted(sim.Filter{Chat: free})
	require.Len(t, others, 3)
	require.True(t, pgtest.Value[bool](h.DB, `select cooldown_until is null from autopost.channels where channel_id = 'on-max'`), "the other channel did not wait")
	require.Equal(t, 1, events(h, "cooldown"))
	require.Len(t, h.Copies(), 6)
	h.Verified()
}

// A chat that throws us out pauses its channel, and the third time in a row
// disables it; the rest goes on.
func TestKickedOutOfAChat(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	h.World.Telegram.SetAccess(numeric(t, chat), telegram.AccessKicked)
	d := h.Serve()
	for n := 1; n <= 3; n++ {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
		h.UntilTrue(`select error_streak = $1 and paused_until > now() from autopost.channels where channel_id = 'on-telegram'`, n)
		require.Equal(t, n, events(h, "channel_paused"))
		require.Equal(t, n < 3, pgtest.Value[bool](h.DB, `select enabled from autopost.channels where channel_id = 'on-telegram'`))
		h.Until("the other channel has it", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == n })
		h.Exec(`update autopost.channels set paused_until = null where workspace_id = 'news' and channel_id = 'on-telegram'`)
	}
	require.Equal(t, 1, events(h, "channel_disabled"))
	answer := h.Push(d, "secret-cms", harness.Post("text", "After that"))
	require.Equal(t, 1, answer.Number("enqueued"), "a disabled channel gets nothing")
	h.Until("the other channel goes on", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 4 })
	require.Len(t, h.Sends(sim.Filter{Chat: chat}), 3)
	h.Verified()
}

// If it is unknown whether a post arrived and the platform cannot be asked, it is sent at
// most once more, and only after that was written down; where the channel says hold, never.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	once := h.Channel("news", harness.Channel{ID: "once", Platform: harness.Telegram})
	onMAX := h.Channel("news", harness.Channel{ID: "on-max", Platform: harness.MAX})
	twice := h.Channel("news", harness.Channel{ID: "twice", Platform: harness.Telegram})
	held := h.Channel("news", harness.Channel{ID: "held", Platform: harness.Telegram, OnUnknown: "hold"})
	for chat, times := range map[string]int{once: 1, onMAX: 1, twice: 2, held: 1} {
		h.Fault(sim.Fault{Chat: chat, To: times, Effect: sim.EffectAcceptThenDrop})
	}
	h.Exec(`update autopost.platforms set settle_seconds = 1 where platform = 'max'`)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Did you get this?"))
	h.Drained("news")

	require.Equal(t, map[string]any{
		"once": "sent 1", "on-max": "sent 1", "twice": "failed_permanent 2", "held": "retry 1",
	}, h.JSON(`select jsonb_object_agg(channel_id, status || ' ' || unknown_outcomes) from autopost.deliveries`))
	require.True(t, pgtest.Value[bool](h.DB, `select last_error ->> 'code' = 'unknown_outcome' from autopost.deliveries where channel_id = 'twice'`))
	require.True(t, pgtest.Value[bool](h.DB, `select next_retry_at = 'infinity' and outcome_unknown_at is not null from autopost.deliveries where channel_id = 'held'`))
	for chat, copies := range map[string]int{once: 2, onMAX: 1, twice: 2, held: 1} {
		require.Len(t, h.Accepted(sim.Filter{Chat: chat}), copies)
	}
	h.Judge("news")

	h.Push(d, "secret-cms", harness.Post("text", "The next one"))
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: held}), 2, "a held post does not hold up its channel")
	require.Equal(t, harness.Totals{Deliveries: 8, Sent: 6, Held: 1, Failed: 1, Extra: 2}, h.Judge("news"))
	h.Verified()
}

// A credential that was revoked pauses its channels, and no word of it leaks.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	h.Fault(sim.Fault{Platform: harness.Telegram, To: 1, Effect: sim.EffectStatus, Status: 401, Description: "Unauthorized"})
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "One"))
	h.Push(d, "secret-cms", harness.Post("text", "Two"))
	h.UntilTrue(`select paused_until > now() from autopost.channels where channel_id = 'on-telegram'`)
	h.Until("the other channel has both", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 2 })
	require.Len(t, h.Sends(sim.Filter{Chat: chat}), 1)
	h.Exec(`update autopost.channels set paused_until = null where workspace_id = 'news' and channel_id = 'on-telegram'`)
	h.Until("the queue of the channel goes on", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 1 })
	require.False(t, pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.events e where e::text like '%canary%')`))
}
