package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/adapter/maxmessenger"
	tg "autopost/internal/adapter/telegram"
	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// serviceChat is where posts on Telegram are looked at.
const serviceChat = int64(-1_009_999_999_999)

// found counts the posts that were found on their platforms and not sent again.
func found(h *harness.Harness) int {
	return pgtest.Value[int](h.DB, `select count(*)::int from autopost.events e where e.action = 'sent' and e.meta #> '{raw,raw,reconciled}' = 'true'`)
}

// The database lets nothing go out again before the adapters say that the platform would show it.
func TestSettleTimesAreKept(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	for platform, settles := range map[string]interface{ SettleTime() time.Duration }{"max": &maxmessenger.Adapter{}, "telegram": &tg.Adapter{}} {
		require.LessOrEqual(t, settles.SettleTime().Seconds(), pgtest.Value[float64](base, `select settle_seconds::float8 from autopost.platforms where platform = $1`, platform))
	}
}

// An answer of MAX that was lost costs no second copy: the chat is read back. What was never taken is sent again.
func TestLostAnswersOnMAXAreLookedUp(t *testing.T) {
	t.Parallel()
	const taken, lost = 30, 10
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Exec(`update autopost.platforms set settle_seconds = 10 where platform = 'max'`)
	chats := map[string]string{} // one for each fault: faults count calls
	for _, id := range []string{"taken", "lost"} {
		chats[id] = h.Channel("news", harness.Channel{ID: id, Platform: harness.MAX, Group: id})
	}
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour' where workspace_id = 'news'`)
	h.Fault(sim.Fault{Platform: harness.MAX, Chat: chats["taken"], Method: "POST /messages", To: taken, Effect: sim.EffectAcceptThenDrop})
	h.Fault(sim.Fault{Platform: harness.MAX, Chat: chats["lost"], Method: "POST /messages", To: lost, Effect: sim.EffectReset})
	d := h.Serve()
	for n := range taken + lost {
		only := "taken"
		if n >= taken {
			only = "lost"
		}
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d, 1 < 2 & so on", n), "routing", map[string]any{"include_channels": []string{only}}))
	}
	// All first calls come before the second call of any that was lost.
	h.Exec(`update autopost.channels set paused_until = null where workspace_id = 'news'`)
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: taken + lost, Sent: taken + lost}, h.Judge("news"), "each once, under the very id")
	require.Len(t, h.Accepted(), taken+lost)
	require.Len(t, h.Sends(), taken+2*lost)
	require.Equal(t, taken, found(h))
	require.Equal(t, taken+lost, events(h, "unknown_outcome"))
	h.Verified()
	t.Logf("MAX: %d lost acknowledgements resolved without a second copy, %d lost requests sent again, no false find", taken, lost)
}

// So it is on Telegram where a channel has a service chat, in which nothing stays.
func TestLostAnswersOnTelegramAreLookedUp(t *testing.T) {
	t.Parallel()
	const outlets, rounds, each = 5, 3, 2
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.World.Telegram.AddChat(telegram.Chat{ID: serviceChat})
	var chats []string
	for n := range outlets { // a group each: a loss in one does not stop the others
		id := fmt.Sprint("channel-", n)
		chats = append(chats, h.Channel("news", harness.Channel{ID: id, Platform: harness.Telegram, Group: id}))
	}
	h.Exec(`update autopost.channels set settings = jsonb_build_object('service_chat_id', $1::bigint)`, serviceChat)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "The first of each"))
	h.Drained("news")
	for round := range rounds {
		for _, chat := range chats {
			h.Fault(sim.Fault{Chat: chat, Method: "sendMessage", To: each, Effect: sim.EffectAcceptThenDrop})
		}
		for n := range each {
			h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d of round %d, 1 < 2 & so on", n, round)))
		}
		h.Drained("news")
		h.World.Faults.Clear()
	}
	const taken = outlets * rounds * each
	require.Equal(t, taken, found(h))
	h.Fault(sim.Fault{Chat: chats[0], Method: "sendMessage", To: 1, Effect: sim.EffectReset})
	h.Push(d, "secret-cms", harness.Post("text", "Lost on the way"))
	h.Drained("news")
	require.Equal(t, taken, found(h), "what was never taken is not found")
	require.Equal(t, harness.Totals{Deliveries: taken + 2*outlets, Sent: taken + 2*outlets}, h.Judge("news"), "each once, under the very id")
	require.Len(t, h.Sends(), taken+2*outlets+1)
	require.Empty(t, h.World.Telegram.Messages(serviceChat), "nothing stays in the service chat")
	h.Verified()
	t.Logf("Telegram: %d lost acknowledgements resolved without a second copy, 1 lost request sent again, no false find", taken)
}

// An upload to YouTube whose last answer was lost, and the question after it, makes no second video.
func TestLostAnswersOnYouTubeAreLookedUp(t *testing.T) {
	t.Parallel()
	const lost = 25
	h, channel := studio(t)
	h.Fault(sim.Fault{Method: videoBytes, To: 2 * lost, Effect: sim.EffectAcceptThenDrop})
	d := h.Serve()
	for n := range lost {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Video ", n), "media", []any{film(h, fmt.Sprintf("lost-%d.mp4", n), 64<<10)}))
	}
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries where status = 'sent'`, lost)
	require.Len(t, h.World.YouTube.Videos(channel), lost)
	require.Len(t, h.World.Log.Entries(sim.Filter{Method: videoStart}), lost, "a session each")
	require.Equal(t, harness.Totals{Deliveries: lost, Sent: lost}, h.Judge("news"))
	require.Len(t, slices.DeleteFunc(h.World.Log.Entries(sim.Filter{Method: videoBytes}), func(e sim.Entry) bool { return e.Fault == "" }), 2*lost)
	h.Verified()
	t.Logf("YouTube: %d uploads whose answers were lost, %d videos", lost, len(h.World.YouTube.Videos(channel)))
}

// A chat that became another is followed: by the post that learnt of it, at once, and by all that wait.
func TestAGroupThatMovedIsFollowed(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	const moved = int64(-1_007_777_777_777)
	h.World.Telegram.AddChat(telegram.Chat{ID: numeric(t, chat), Type: "group"})
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Before"))
	h.Drained("news")
	h.World.Telegram.Migrate(numeric(t, chat), moved)
	for n := range 3 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("After ", n)))
	}
	h.Drained("news")
	require.Equal(t, fmt.Sprint(moved), pgtest.Value[string](h.DB, `select target_id from autopost.channels where channel_id = 'on-telegram'`))
	refused := h.Sends(sim.Filter{Chat: chat})[1:]
	require.Len(t, refused, 1, "one post learnt of it")
	now := h.Accepted(sim.Filter{Chat: fmt.Sprint(moved)})
	require.Len(t, now, 3)
	require.True(t, slices.ContainsFunc(now, func(e sim.Entry) bool { return e.Text == refused[0].Text }), "the refused post, too")
	require.Equal(t, 1, events(h, "channel_moved"))
	require.Zero(t, events(h, "unknown_outcome"))
	require.Equal(t, []string{"autopost"}, pgtest.Column[string](h.DB, `select operator from autopost.admin_audit_log where action = 'move_target'`))
	h.Verified()
}

// A limit that names no scope is the channel's; a second chat of the credential inside ten seconds makes it the group's.
func TestTwoLimitedChatsAreTheCredentials(t *testing.T) {
	t.Parallel()
	for platform, wait := range map[string]int{harness.Telegram: 4, harness.MAX: 0} { // MAX states none
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			h.Workspace("news")
			h.Endpoint("news", "cms", "secret-cms")
			var chats []string
			for _, id := range []string{"a", "b", "c"} {
				chats = append(chats, h.Channel("news", harness.Channel{ID: id, Platform: platform}))
			}
			only := func(ids ...string) map[string]any { return map[string]any{"include_channels": ids} }
			limited := func(chat string) {
				h.Fault(sim.Fault{Platform: platform, Chat: chat, To: 1, Effect: sim.EffectStatus, Status: 429, RetryAfter: wait})
			}
			limited(chats[0])
			d := h.Serve()
			h.Push(d, "secret-cms", harness.Post("text", "One", "routing", only("a")))
			h.Until("the first is limited", func() bool { return events(h, "cooldown") == 1 })
			h.Push(d, "secret-cms", harness.Post("text", "Two", "routing", only("c")))
			h.Until("another chat goes on", func() bool { return len(h.Accepted(sim.Filter{Chat: chats[2]})) == 1 })
			limited(chats[1])
			h.Push(d, "secret-cms", harness.Post("text", "Three", "routing", only("b")))
			h.Until("the second is limited", func() bool { return events(h, "cooldown") == 2 })
			known := pgtest.Value[time.Time](h.DB, `select clock_timestamp()`)
			h.Push(d, "secret-cms", harness.Post("text", "Four", "routing", only("c")))
			h.Drained("news")
			second := h.Sends(sim.Filter{Chat: chats[1]})[0]
			require.Equal(t, 429, second.Status)
			least := max(time.Duration(wait)*time.Second, 800*time.Millisecond)
			// A call that had its start record before the commit of the limit may still be on its way.
			starts := pgtest.Column[time.Time](h.DB, `select e.ts from autopost.events e where e.action = 'send_attempt' and e.ts > $1`, known)
			require.NotEmpty(t, starts)
			require.Len(t, h.Sends(), events(h, "send_attempt"))
			for _, start := range starts {
				require.GreaterOrEqual(t, start.Sub(second.End), least, "the whole group waits")
			}
			require.Len(t, h.Accepted(), 4)
			require.Equal(t, []string{"channel", "platform"}, pgtest.Column[string](h.DB, `select e.meta ->> 'scope' from autopost.events e where e.action = 'cooldown' order by e.ts`))
			h.Verified()
		})
	}
}
