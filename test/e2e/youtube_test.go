package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/youtube"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	videoStart = "POST /upload/youtube/v3/videos"
	videoBytes = "PUT /upload/youtube/v3/videos"
)

// film is a medium of the given size that is declared as a video.
func film(h *harness.Harness, name string, size int) map[string]any {
	content := make([]byte, size)
	copy(content, "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"+name)
	for i := 64; i < size; i++ {
		content[i] = byte(i * 31 >> 3)
	}
	h.World.Files.Set(name, "video/mp4", content)
	return map[string]any{"type": "video", "url": h.WorldURL + "/files/" + name}
}

// studio is a workspace with an endpoint and a YouTube channel.
func studio(t *testing.T) (h *harness.Harness, channel string) {
	t.Helper()
	h = harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	return h, h.YouTubeChannel("news", "shows")
}

// digest is that of a file on the source's shelf.
func digest(h *harness.Harness, name string) string {
	_, content, _ := h.World.Files.Get(name)
	return sim.Digest(content)
}

// A daemon is killed in the middle of an upload. The next one asks the session and goes
// on from where it stands; the channel has one video, with the very bytes, and all that belongs to it.
func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	h, channel := studio(t)
	lease := []string{"SENDING_LEASE_SECONDS=8", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=4000"}
	h.World.Files.Set("en.srt", "application/x-subrip", []byte("1\n00:00:00,000 --> 00:00:02,000\nHello\n"))
	h.Fault(sim.Fault{Method: videoBytes, From: 2, To: 2, Effect: sim.EffectHang})
	d := h.Serve(lease...)
	h.Push(d, "secret-cms", harness.Post("text", "The description", "media", []any{
		film(h, "show.mp4", 20<<20), picture(h, "photo-1.png")[0], map[string]any{"type": "file", "url": h.WorldURL + "/files/en.srt"},
	}, "variants", map[string]any{"youtube": map[string]any{
		"title": "The show", "tags": []string{"news"}, "privacy": "unlisted", "captions": []any{map[string]any{"media": 2, "language": "en"}},
	}}))
	h.Until("the upload is half done", func() bool { return len(h.World.Log.Entries(sim.Filter{Method: videoBytes})) == 2 })
	d.Kill()
	h.Serve(lease...)
	h.Drained("news")

	videos := h.World.YouTube.Videos(channel)
	require.Len(t, videos, 1)
	v := videos[0]
	require.Equal(t, []any{"The show", "The description", []string{"news"}, "unlisted", []string{"en "}}, []any{v.Title, v.Description, v.Tags, v.Privacy, v.Captions})
	require.Equal(t, digest(h, "show.mp4"), v.Media.Digest)
	_, photo, _ := feeds.Generate("photo-1.png")
	require.Equal(t, sim.Digest(photo), v.Thumbnail.Digest)
	require.Len(t, h.World.Log.Entries(sim.Filter{Method: videoStart}), 1, "one session")
	parts := h.World.Log.Entries(sim.Filter{Method: videoBytes})
	require.Zero(t, parts[2].BytesIn, "a question first")
	var rest int64
	for _, e := range parts[2:] {
		rest += e.BytesIn
	}
	require.EqualValues(t, 12<<20, rest, "only what was lacking")

	require.Equal(t, harness.Totals{Deliveries: 1, Sent: 1}, h.Judge("news"))
	require.Equal(t, v.ID, pgtest.Value[string](h.DB, `select provider_message_id from autopost.deliveries`))
	require.Equal(t, 1, events(h, "sending_lease_expired"))
	require.Zero(t, events(h, "unknown_outcome"), "it could be asked for")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries d where d::text ~ 'AEnB2U|upload_id'`), "the session is sealed")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events e where e::text ~ 'AEnB2U|upload_id|canary'`))
	h.Verified()
}

// A long upload outlives its token, twice. Each time the credential is renewed, and the
// session goes on from where it stands: one attempt, one session, one video.
func TestTokensThatExpireInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	h, channel := studio(t)
	for _, nth := range []int{2, 5} { // the second part, then, behind a question and that part, the third
		h.Fault(sim.Fault{Method: videoBytes, From: nth, To: nth, Effect: sim.EffectStatus, Status: 401, Code: "authError"})
	}
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "A long one", "media", []any{film(h, "long.mp4", 20<<20)}))
	h.UntilTrue(`select count(*) = 1 from autopost.deliveries where status not in ('queued', 'sending')`)

	videos := h.World.YouTube.Videos(channel)
	require.Len(t, videos, 1)
	require.Equal(t, digest(h, "long.mp4"), videos[0].Media.Digest)
	require.Len(t, h.World.Log.Entries(sim.Filter{Method: videoStart}), 1)
	var spoke []string
	var taken int64
	for _, e := range h.World.Log.Entries(sim.Filter{Method: videoBytes}) {
		if len(spoke) == 0 || spoke[len(spoke)-1] != e.Credential {
			spoke = append(spoke, e.Credential)
		}
		if e.Accepted {
			taken += e.BytesIn
		}
	}
	require.Len(t, spoke, 3, "three tokens, one after the other")
	require.EqualValues(t, 20<<20, taken, "no byte twice")
	require.Len(t, h.World.Log.Entries(sim.Filter{Method: "POST /token"}), 3, "the first, and one for each that was refused")
	require.Equal(t, harness.Totals{Deliveries: 1, Sent: 1}, h.Judge("news"))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select attempt from autopost.deliveries`))
	require.Equal(t, 3, events(h, "auth_refreshed"))
	require.Zero(t, events(h, "auth_lost"))
	h.Verified()
}

// When a day's quota is used up, the whole project waits for the next day in California.
func TestTheDaysQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	h, first := studio(t)
	second := h.YouTubeChannel("news", "talks")
	h.World.YouTube.SetQuotas(youtube.Quotas{Units: 10_000, Uploads: 1})
	d := h.Serve()
	for n, channel := range []string{"shows", "talks", "shows"} {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Video ", n), "media", []any{film(h, fmt.Sprintf("clip-%d.mp4", n), 64<<10)},
			"routing", map[string]any{"include_channels": []string{channel}}))
		if n == 0 {
			h.UntilTrue(`select status = 'sent' from autopost.deliveries where channel_id = 'shows'`)
		}
	}
	h.UntilTrue(`select cooldown_until > now() from autopost.platform_limits where platform = 'youtube' and rate_group = 'google-project'`)
	h.UntilTrue(`select count(*) = 3 from autopost.deliveries`)
	require.Len(t, h.World.YouTube.Videos(first), 1)
	require.Empty(t, h.World.YouTube.Videos(second))
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	until := pgtest.Value[time.Time](h.DB, `select cooldown_until from autopost.platform_limits where rate_group = 'google-project'`).In(zone)
	require.WithinRange(t, until, midnightBefore(until).Add(time.Minute-5*time.Second), midnightBefore(until).Add(11*time.Minute))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status in ('retry', 'queued')`)
	h.Verified()
}

func midnightBefore(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())
}

// channel check with an expired token renews it and repeats the request, as an upload does.
func TestCheckOfAChannelWhoseTokenHasExpired(t *testing.T) {
	t.Parallel()
	h, channel := studio(t)
	check := func() map[string]any {
		run := h.Run(nil, "credential", "check", "shows", "--json")
		require.Zero(t, run.Code, "%s%s", run.Stdout, run.Stderr)
		rows := rowsOf(t, run.Stdout)
		require.Len(t, rows, 1)
		return rows[0]
	}
	row := check()
	require.Equal(t, []any{"shows", channel, true}, []any{row["account"], row["target"], row["ok"]})
	require.Equal(t, 1, events(h, "auth_refreshed"))
	check()
	require.Equal(t, 1, events(h, "auth_refreshed"))
	h.World.YouTube.ExpireTokens()
	require.Equal(t, row, check())
	require.Equal(t, 2, events(h, "auth_refreshed"))

	h.Exec(`update autopost.channels set target_id = 'UCharness-other'`)
	run := h.Run(nil, "channel", "check", "shows")
	require.Equal(t, 1, run.Code)
	require.Contains(t, run.Stdout, "link the other channel")
	h.World.YouTube.Disconnect(channel)
	run = h.Run(nil, "credential", "check", "shows")
	require.Equal(t, 1, run.Code)
	require.Contains(t, run.Stdout, "link the account again")
	require.Equal(t, 1, events(h, "auth_lost"))
}
