package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/s3test"
	"autopost/test/harness"
)

func TestMain(m *testing.M) {
	if err := s3test.SignAll(); err != nil {
		panic(err)
	}
	harness.Main(m)
}

const (
	posts    = 25
	channels = 40
	// channelRate and groupRate are in posts a second.
	channelRate = 6
	groupRate   = 70
	// epsilon is how much closer two requests may arrive than their slots are apart: a
	// call may begin 100 ms after its slot, and the way to the receiver is not always
	// equally long on a machine that is busy.
	epsilon = 250 * time.Millisecond
)

// outlet is a channel together with the rule by which the test itself routes.
type outlet struct {
	harness.Channel
	chat  string
	takes func(tags []string) bool
}

func outlets(h *harness.Harness) []outlet {
	list := make([]outlet, channels)
	for i := range list {
		o := &list[i]
		o.Channel = harness.Channel{ID: fmt.Sprintf("channel-%02d", i), Platform: harness.Telegram, Rate: channelRate, Parallel: 2}
		if i%2 == 1 {
			o.Platform = harness.MAX
		}
		switch {
		case i < 8:
			o.Filter = `{"include_any": ["red", "green"]}`
			o.takes = func(tags []string) bool { return slices.Contains(tags, "red") || slices.Contains(tags, "green") }
		case i < 16:
			o.Filter = `{"include_all": ["red", "news"]}`
			o.takes = func(tags []string) bool { return slices.Contains(tags, "red") && slices.Contains(tags, "news") }
		case i < 24:
			o.Filter = `{"exclude": ["blue"]}`
			o.takes = func(tags []string) bool { return !slices.Contains(tags, "blue") }
		default:
			o.takes = func([]string) bool { return true }
		}
		o.chat = h.Channel("news", o.Channel)
	}
	return list
}

func tagsOf(post int) []string {
	tags := []string{[]string{"red", "green", "blue"}[post%3]}
	if post%2 == 0 {
		tags = append(tags, "news")
	}
	return tags
}

// Every routed delivery is accepted exactly once, no channel and no group goes over
// its rate, and nothing of what was promised is missing.
func TestManyPostsToManyChannels(t *testing.T) {
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	list := outlets(h)
	const paused = 39
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour' where channel_id = $1`, list[paused].ID)
	media := h.Channel("news", harness.Channel{ID: "media-only", Platform: harness.Telegram, Mode: "media"})
	for _, platform := range []string{harness.Telegram, harness.MAX} {
		h.GroupRate("news", platform, platform, groupRate)
	}
	d := h.Serve()

	want := map[harness.Text]int{}
	waiting := 0
	for n := range posts {
		tags, text := tagsOf(n), fmt.Sprintf("Post %d of the day", n)
		answer := h.Push(d, "secret-cms", harness.Post("source_ref", fmt.Sprint("cms-", n), "text", text, "tags", tags))
		require.Equal(t, 202, answer.Status)
		routed := 0
		for i, o := range list {
			if !o.takes(tags) {
				continue
			}
			routed++
			if i == paused {
				waiting++
				continue
			}
			want[harness.Text{Platform: o.Platform, Chat: o.chat, Text: text}] = 1
		}
		require.Equal(t, routed, answer.Number("enqueued"), text)
		require.Equal(t, 1, answer.Number("skipped"), "the channel that takes media only")
		require.Zero(t, answer.Number("deduped")+answer.Number("invalid"))
	}
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries where status = 'sent'`, len(want))
	require.Equal(t, want, h.Copies())
	require.Empty(t, h.Sends(sim.Filter{Chat: media}))
	require.Equal(t, map[string]any{"queued": float64(waiting), "sent": float64(len(want))}, h.JSON(
		`select jsonb_object_agg(s.status, s.n) from (select status, count(*) as n from autopost.deliveries group by status) s`))
	require.Equal(t, posts, pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages`))

	for _, o := range list {
		h.WithinRate(o.ID, h.Sends(sim.Filter{Platform: o.Platform, Chat: o.chat}), channelRate)
	}
	for _, platform := range []string{harness.Telegram, harness.MAX} {
		h.WithinRate("group "+platform, h.Sends(sim.Filter{Platform: platform}), groupRate)
	}
	h.Verified()
}

// The same content through two endpoints at once is one message, one delivery a
// channel, and one copy at each receiver.
func TestSameContentThroughTwoEndpoints(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Endpoint("news", "crm", "secret-crm")
	want := map[harness.Text]int{}
	for i := range 6 {
		c := harness.Channel{ID: fmt.Sprint("channel-", i), Platform: []string{harness.Telegram, harness.MAX}[i%2]}
		want[harness.Text{Platform: c.Platform, Chat: h.Channel("news", c), Text: "Stop press"}] = 1
	}
	d := h.Serve()

	const pushes = 50
	answers := make([]harness.Answer, pushes)
	errs := make([]error, pushes)
	var all sync.WaitGroup
	for n := range pushes {
		all.Go(func() {
			body := harness.Post("source_ref", fmt.Sprint("ref-", n), "text", "Stop press")
			answers[n], errs[n] = h.TryPush(d.URL, []string{"secret-cms", "secret-crm"}[n%2], body)
		})
	}
	all.Wait()
	enqueued, deduped := 0, 0
	for n, answer := range answers {
		require.NoError(t, errs[n])
		require.Equal(t, 202, answer.Status)
		require.Equal(t, answers[0].Text("message_id"), answer.Text("message_id"))
		enqueued += answer.Number("enqueued")
		deduped += answer.Number("deduped")
	}
	require.Equal(t, 6, enqueued)
	require.Equal(t, 6*(pushes-1), deduped)
	h.Drained("news")
	require.Equal(t, want, h.Copies())
	require.Equal(t, map[string]any{"messages": 1.0, "deliveries": 6.0}, h.JSON(`
		select jsonb_build_object('messages', (select count(*) from autopost.messages), 'deliveries', (select count(*) from autopost.deliveries))`))
}
