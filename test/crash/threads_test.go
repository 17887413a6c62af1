package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// serviceChat is where the Telegram adapter reads messages after an unknown outcome.
const serviceChat = -1009999999999

// threadTexts are the texts of a thread of five parts and of its first comment.
var threadTexts = []string{"One", "Two", "Three", "Four", "Five", "Look"}

// thread returns a thread of five parts with a picture each, and a first comment.
func thread(h *harness.Harness) string {
	media, parts := []any{}, []any{}
	for n, text := range threadTexts[:5] {
		media = append(media, map[string]any{"type": "image", "url": fmt.Sprintf("%s/files/photo-%d.png", h.WorldURL, n+1)})
		if n > 0 {
			parts = append(parts, map[string]any{"text": text, "media": []int{n + 1}})
		}
	}
	return harness.Post("source_ref", "thread", "text", threadTexts[0], "media", media, "thread", parts, "first_comment", threadTexts[5])
}

// The daemon dies at each step of a thread with pictures, on three platforms at once. After a recorded unknown
// outcome one message may arrive twice. All others arrive once, and each replies to its parent. YouTube
// takes no thread.
func TestKilledAtEveryStepOfAThread(t *testing.T) {
	t.Parallel()
	orders := []string{fmt.Sprintf("%s:8", failpoint.StepAcknowledged)}
	if os.Getenv("AUTOPOST_LONG") != "" {
		orders = nil
		for nth := 1; nth <= 15; nth++ {
			orders = append(orders, fmt.Sprintf("%s:%d", failpoint.StepAcknowledged, nth), fmt.Sprintf("%s:%d", failpoint.BetweenSteps, nth))
		}
		for nth := 1; nth <= 3; nth++ {
			orders = append(orders, fmt.Sprintf("%s:%d", failpoint.Started, nth), fmt.Sprintf("%s:%d", failpoint.ReplyRead, nth), fmt.Sprintf("%s:%d", failpoint.Committed, nth))
		}
		for nth := 6; nth <= 40; nth += 2 { // answers to uploads and posts
			orders = append(orders, fmt.Sprintf("%s:%d", failpoint.Accepted, nth))
		}
	}
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			dieInAThread(t, order)
		})
	}
}

func dieInAThread(t *testing.T, order string) {
	h := harness.New(t, harness.WithFailpoints)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	chats := map[string]string{}
	for _, platform := range []string{harness.Telegram, harness.MAX, harness.X} {
		chats[platform] = h.Channel("news", harness.Channel{ID: platform, Platform: platform})
	}
	if len(order)%2 == 0 { // Telegram can be asked in about half of the runs
		h.World.Telegram.AddChat(telegram.Chat{ID: serviceChat})
		h.Exec(`update autopost.channels set settings = jsonb_build_object('service_chat_id', $1::bigint) where channel_id = 'telegram'`, serviceChat)
	}
	h.YouTubeChannel("news", "youtube")
	h.Exec(`update autopost.platforms set settle_seconds = 1`) // the simulators show a post at once
	d := h.ServeUntilDeath(append(quick, "AUTOPOST_FAILPOINT="+order)...)
	s := newSource(h, d)
	s.send = func(url string, _ int) (harness.Answer, error) { return h.TryPush(url, "secret-cms", thread(h)) }
	pushed := s.pushAll(t.Context(), 0, 1)
	require.True(t, d.Died(), "the point was not passed so often: %s", order)
	d = h.Serve(quick...)
	s.url.Store(&d.URL)
	s.wait(pushed)
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries`)
	h.Drained("news")

	copies := 0
	for platform, chat := range chats {
		copies += judgeThread(t, h, platform, chat)
	}
	t.Logf("%s: %d of %d messages twice", order, copies, len(chats)*len(threadTexts))
	require.Equal(t, "validation_failed", pgtest.Value[string](h.DB,
		`select last_error ->> 'code' from autopost.deliveries where channel_id = 'youtube' and status = 'failed_permanent'`))
	require.Zero(t, d.Stop())
	h.Verified()
}

// judgeThread compares a thread with the log of its platform. It returns the number of messages that arrived
// twice.
func judgeThread(t *testing.T, h *harness.Harness, platform, chat string) (copies int) {
	t.Helper()
	var row struct {
		Status  string
		Steps   map[string][]string
		Names   []string
		Unknown int
	}
	require.NoError(t, json.Unmarshal([]byte(pgtest.Value[string](h.DB, `select jsonb_build_object('status', d.status,
		'steps', d.render_meta #> '{series_progress,steps}', 'names', jsonb_path_query_array(d.render_meta, '$.steps[*].step'),
		'unknown', d.unknown_outcomes)::text from autopost.deliveries d where d.channel_id = $1`, platform)), &row))
	require.Equal(t, "sent", row.Status, platform)
	require.Len(t, row.Names, len(threadTexts))
	next := 0 // the message that the platform has not got yet
	for _, e := range h.Accepted(sim.Filter{Platform: platform, Chat: chat}) {
		n := slices.Index(threadTexts, e.Text)
		switch {
		case n == next:
			next++
		case n == next-1 && copies < row.Unknown:
			copies++
		default:
			t.Errorf("%s: %q arrived when %q was next, after %d unknown outcomes and %d copies", platform, e.Text, threadTexts[min(next, len(threadTexts)-1)], row.Unknown, copies)
		}
		if n > 0 {
			parent := n - 1
			if n == len(threadTexts)-1 {
				parent = 0
			}
			require.Equal(t, row.Steps[row.Names[parent]][0], e.ReplyTo, "%s: parent of %q", platform, e.Text)
		}
		require.Len(t, e.Media, map[bool]int{true: 1, false: 0}[n < 5], "%s: %q", platform, e.Text)
	}
	require.Equal(t, len(threadTexts), next, platform)
	require.LessOrEqual(t, copies, 1, platform)
	return copies
}
