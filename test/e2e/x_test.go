package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	adapter "autopost/internal/adapter/twitter"
	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// settled is when a timeline shows a post at the latest.
const settled = 4 * time.Second

// account is an installation with one channel on X, of these settings.
func account(t *testing.T, settings string) *harness.Harness {
	t.Helper()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Channel("news", harness.Channel{ID: "on-x", Platform: harness.X})
	h.Exec(`update autopost.channels set settings = $1::jsonb where channel_id = 'on-x'`, settings)
	return h
}

// sentOnX waits until the nth post has left, and returns what the account then holds.
func sentOnX(h *harness.Harness, n int) []twitter.Post {
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries where status = 'sent'`, n)
	return h.World.X.Posts(harness.XAccount)
}

// long is a text for a thread of several parts, of which no two are the same.
func long() string {
	sentences := make([]string, 80)
	for n := range sentences {
		sentences[n] = fmt.Sprintf("sentence %d;", n)
	}
	return strings.Join(sentences, " ")
}

// A text, pictures with what is to be said of them, and a thread arrive on X as they were pushed.
func TestPostsOnX(t *testing.T) {
	t.Parallel()
	h := account(t, `{"made_with_ai": true, "long_text": "split"}`)
	d := h.Serve()
	const text = "Nyx < Helion & co, in 7 rounds: https://example.org/a?b=1 👩‍👩‍👧"
	h.Push(d, "secret-cms", harness.Post("text", text))
	posts := sentOnX(h, 1)
	require.Equal(t, text, posts[0].Text)
	require.True(t, posts[0].MadeByAI)
	require.Empty(t, posts[0].ReplyTo)

	media := append(picture(h, "photo-1.png"), picture(h, "photo-2.png")...)
	media[0].(map[string]any)["alt"] = "two fighters"
	h.Push(d, "secret-cms", harness.Post("text", "With pictures", "media", media))
	posts = sentOnX(h, 2)
	require.Equal(t, []string{"two fighters", ""}, posts[1].AltTexts)
	for i := range 2 {
		_, content, _ := feeds.Generate(fmt.Sprintf("photo-%d.png", i+1))
		require.Equal(t, sim.Digest(content), posts[1].Media[i].Digest, "the very bytes, in their order")
	}

	h.Push(d, "secret-cms", harness.Post("text", long()))
	thread := sentOnX(h, 3)[2:]
	require.Greater(t, len(thread), 3)
	var said []string
	for n, post := range thread {
		require.LessOrEqual(t, twitter.WeightedLength(post.Text), 270)
		require.Equal(t, n == 0, post.ReplyTo == "")
		if n > 0 {
			require.Equal(t, thread[n-1].ID, post.ReplyTo, "each answers the one before")
		}
		said = append(said, post.Text)
	}
	require.Equal(t, long(), strings.Join(said, " "))
	require.True(t, pgtest.Value[bool](h.DB, `select provider_message_id = $1 from autopost.deliveries order by delivery_id desc limit 1`, thread[0].ID))
	for _, e := range h.World.Log.Entries(sim.Filter{Platform: harness.X}) {
		require.Empty(t, e.Notes, e.Method)
		require.True(t, e.Accepted, e.Method)
	}
	h.Verified()
}

// The database lets nothing go out again before the adapter says that the platform would show it.
func TestSettleTimeOfXIsKept(t *testing.T) {
	t.Parallel()
	x, err := adapter.New(adapter.Config{})
	require.NoError(t, err)
	require.LessOrEqual(t, x.SettleTime().Seconds(), pgtest.Value[float64](pgtest.New(t), `select settle_seconds::float8 from autopost.platforms where platform = 'x'`))
}

// An answer that was lost costs no second copy: once the timeline must show the post,
// it is found there. What was never taken is sent again.
func TestLostAnswersOnXAreLookedUp(t *testing.T) {
	t.Parallel()
	const taken, lost = 15, 10
	h := account(t, `{}`)
	h.World.X.SetSettle(settled / 2)
	h.Exec(`update autopost.platforms set settle_seconds = $1 where platform = 'x'`, int(settled.Seconds()))
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/tweets", To: taken, Effect: sim.EffectAcceptThenDrop})
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/tweets", From: taken + 1, To: taken + lost, Effect: sim.EffectReset})
	// All posts are stored before the first call, and all first calls run at once, because the faults count calls: a
	// resend that comes before the last first call takes the fault of that call.
	h.Exec(`update autopost.channels set max_parallel = $1`, taken+lost)
	d := h.ServeOnly("ingest,web")
	for n := range taken + lost {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d of example.org & co: https://example.org/%d?a=b", n, n)))
	}
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries`, taken+lost)
	h.ServeOnly("dispatch,monitor")
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: taken + lost, Sent: taken + lost}, h.Judge("news"), "each once, under the very id")
	require.Len(t, h.Accepted(), taken+lost)
	require.Len(t, h.Sends(), taken+2*lost)
	require.Equal(t, taken, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events e where e.action = 'sent' and e.meta #> '{raw,raw,reconciled}' = 'true'`))
	require.Equal(t, taken+lost, events(h, "unknown_outcome"))
	h.Verified()
}

// A part of a thread that was lost is found, and the thread goes on after it.
func TestAThreadOnXGoesOnAfterALostAnswer(t *testing.T) {
	t.Parallel()
	h := account(t, `{"long_text": "split"}`)
	h.Exec(`update autopost.platforms set settle_seconds = 1 where platform = 'x'`)
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/tweets", From: 2, To: 2, Effect: sim.EffectAcceptThenDrop})
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", long()))
	thread := sentOnX(h, 1)
	require.Len(t, h.Accepted(), len(thread), "no part twice")
	for n := 1; n < len(thread); n++ {
		require.Equal(t, thread[n-1].ID, thread[n].ReplyTo)
	}
	require.True(t, pgtest.Value[bool](h.DB, `select provider_message_id = $1 from autopost.deliveries`, thread[0].ID))
	h.Verified()
}

// Without credit nothing is lost: the account pauses, and the post is sent automatically when there is credit.
func TestAnEmptyAccountOnX(t *testing.T) {
	t.Parallel()
	h := account(t, `{}`)
	h.World.X.SetCredits("harness", 0)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "For money"))
	h.UntilTrue(`select exists (select 1 from autopost.platform_limits where platform = 'x' and cooldown_until > now() + interval '50 minutes')`)
	h.World.X.SetCredits("harness", 1_000_000)
	h.Exec(`update autopost.deliveries set next_retry_at = now()`)
	h.Exec(`update autopost.platform_limits set cooldown_until = null where workspace_id = 'news'`)
	for _, enabled := range []bool{false, true} { // opens its gate, an hour early
		h.Exec(`update autopost.channels set enabled = $1 where workspace_id = 'news'`, enabled)
	}
	require.Len(t, sentOnX(h, 1), 1)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select granted_attempts from autopost.deliveries`), "and it cost no attempt")
}

// Alternative texts and the reads that search for a lost post are spent from the budget, like posts.
func TestEachPriceOfXIsSpent(t *testing.T) {
	t.Parallel()
	h := account(t, `{}`)
	h.Exec(`update autopost.platforms set settle_seconds = 1 where platform = 'x'`)
	h.Exec(`update autopost.use_prices set micros = $1 where use = 'owned_read'`, twitter.PriceOwnRead)
	h.Exec(`insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('news', 'x', 10000000)`)
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/tweets", From: 2, To: 2, Effect: sim.EffectAcceptThenDrop})
	d := h.Serve()
	media := picture(h, "photo-1.png")
	media[0].(map[string]any)["alt"] = "two fighters"
	h.Push(d, "secret-cms", harness.Post("text", "With a picture", "media", media))
	sentOnX(h, 1)
	h.Push(d, "secret-cms", harness.Post("text", "Lost and found: https://example.org"))
	require.Len(t, sentOnX(h, 2), 2)
	var bill int64
	kinds := map[string]bool{}
	for _, charge := range h.World.X.Charges() {
		bill += charge.MicroDollars
		kinds[charge.For] = true
	}
	require.Len(t, kinds, 4, "a post, one with a link, an alternative text, a read: %v", kinds)
	require.Equal(t, bill+twitter.PricePostWithURL, pgtest.Value[int64](h.DB, `select sum(micros)::bigint from autopost.charges`), "the look that finds a post pays for it once more")
	h.Verified()
}
