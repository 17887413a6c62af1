package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A group takes fewer posts than the rate of its channel. Every post is sent, at most one call in two posts is refused,
// and the queue ends in about the time that the limit allows. In full: 552 posts, 20 a minute, which takes half an hour.
func TestQueueOfALimitedGroupIsSentInTime(t *testing.T) {
	t.Parallel()
	posts, limit, rate := 40, sim.Rate{PerSecond: 4, Burst: 4}, 10.0
	if pgtest.Long() {
		posts, limit, rate = 552, telegram.DefaultLimits().Group, 1
	}
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	const chat = -1_009_000_000_001
	h.World.Telegram.AddChat(telegram.Chat{ID: chat, Title: "group", Type: "supergroup"})
	h.World.Telegram.SetLimits(telegram.Limits{Group: limit})
	h.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
		values ('news', 'group', 'telegram', $1, 'telegram', 'telegram', $2)`, fmt.Sprint(chat), rate)
	d := h.Serve()
	began := time.Now()
	for n := range posts {
		answer := h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
		require.Equal(t, 202, answer.Status)
	}
	h.UntilTrue(`select count(*) > 10 from autopost.deliveries where status = 'sent'`)
	for end := time.Now().Add(time.Hour); pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.deliveries where status <> 'sent')`) && time.Now().Before(end); {
		<-time.After(time.Second)
	}
	took := time.Since(began)
	refused := len(h.Sends()) - len(h.Accepted())
	least := time.Duration((float64(posts) - limit.Burst) / limit.PerSecond * float64(time.Second))
	t.Logf("%d posts, %d calls refused, %s; the limit allows it in %s", posts, refused, took.Round(time.Second), least)
	require.Equal(t, posts, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sent'`))
	for place, copies := range h.Copies() {
		require.Equal(t, 1, copies, "%v", place)
	}
	require.LessOrEqual(t, refused, posts/2)
	if pgtest.Long() {
		require.Less(t, took, least*11/10)
	}
	// A slow machine may stay below the limit, or send so long without a refusal that the rate is free again.
	limited := pgtest.Value[bool](h.DB, `select limited_rps is not null from autopost.channels where channel_id = 'group'`)
	require.False(t, limited && refused == 0, "no call was refused")
	require.Equal(t, limited, strings.Contains(ok(t, h, "channel", "list"), "limited by the platform"), "the list names the present rate")
	h.Verified()
}
