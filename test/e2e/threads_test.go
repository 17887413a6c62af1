package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// tweeted are the texts of the account on X, oldest first.
func tweeted(h *harness.Harness) []string {
	var texts []string
	for _, p := range h.World.X.Posts(harness.XAccount) {
		texts = append(texts, p.Text)
	}
	return texts
}

// A thread with pictures and a first comment arrives in order on each platform. Edits by number, pins and
// deletions reach each part. YouTube gets the comment of a video.
func TestThreadsAndFirstComments(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	h.Channel("news", harness.Channel{ID: "on-x", Platform: harness.X})
	shows := h.YouTubeChannel("news", "shows")
	d := h.Serve()
	messaging := map[string]any{"include_channels": []string{"on-telegram", "on-max", "on-x"}}
	thread := []any{"text", "One", "media", pictures(h, 3), "routing", messaging, "first_comment", "Look",
		"thread", []any{map[string]any{"text": "Two", "media": []int{2, 3}}, map[string]any{"text": "Three"}}}

	h.File("thread.json", harness.Post(thread...))
	plan := ok(t, h, "plan", "thread.json", "--json")
	require.Contains(t, plan, `"body": "Three"`)
	require.Contains(t, ok(t, h, "plan", "thread.json"), "2: Two / 3: Three / comment: Look")
	refused := h.Run(nil, "plan", "--text", "One", "--thread", "Two", "--thread", " ", "--first-comment", "Look")
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "thread[1] must have text or media")

	h.Push(d, "secret-cms", harness.Post(thread...))
	h.UntilTrue(`select count(*) = 3 from autopost.deliveries where status = 'sent'`)
	message := pgtest.Value[string](h.DB, `select message_id::text from autopost.messages`)
	for platform, chat := range map[string]string{harness.Telegram: chat, harness.MAX: other} {
		texts := shown(h, platform, chat)
		if platform == harness.Telegram {
			require.Equal(t, []string{"One", "Two", "", "Three", "Look"}, texts, "an album has two messages")
		} else {
			require.Equal(t, []string{"One", "Two", "Three", "Look"}, texts)
		}
	}
	require.Equal(t, []string{"One", "Two", "Three", "Look"}, tweeted(h))

	h.File("edit.json", `{"text": "First", "thread": {"3": {"text": "Third"}}, "first_comment": "See"}`)
	for _, change := range [][]string{{"edit", "--file", "edit.json"}, {"pin"}} {
		asked := h.Run(nil, append(append([]string{"deliveries"}, change...), "--message", message, because)...)
		require.Contains(t, asked.Stderr, "1 of 3 deliveries refused", "X takes neither")
	}
	done(h)
	require.Equal(t, []string{"First", "Two", "", "Third", "See"}, shown(h, harness.Telegram, chat))
	require.Equal(t, []string{"First", "Two", "Third", "See"}, shown(h, harness.MAX, other))
	require.Len(t, h.World.Telegram.Pinned(numeric(t, chat)), 3, "each part")
	require.Equal(t, h.World.MAX.Messages(numeric(t, other))[0].Mid, h.World.MAX.Pinned(numeric(t, other)))

	ok(t, h, "deliveries", "delete", "--message", message, because)
	done(h)
	require.Empty(t, shown(h, harness.Telegram, chat))
	require.Empty(t, shown(h, harness.MAX, other))
	require.Empty(t, tweeted(h))

	// YouTube: a thread is refused, a first comment follows its video.
	film := film(h, "show.mp4", 300<<10)
	toShows := map[string]any{"include_channels": []string{"shows"}}
	h.Push(d, "secret-cms", harness.Post("text", "Refused", "media", []any{film}, "routing", toShows, "thread", []any{map[string]any{"text": "Two"}}))
	h.Push(d, "secret-cms", harness.Post("text", "A show", "media", []any{film}, "routing", toShows, "first_comment", "Links"))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where channel_id = 'shows' and status in ('sent', 'failed_permanent')`)
	videos := h.World.YouTube.Videos(shows)
	require.Len(t, videos, 1)
	require.Equal(t, []string{"Links"}, videos[0].Comments)
	require.Equal(t, 1, events(h, "validation_failed"))
	h.Verified()
}

// A first comment that the platform refuses leaves its post sent, and the reason shows.
func TestFirstCommentThatIsRefused(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	h.Fault(sim.Fault{Platform: harness.Telegram, Chat: chat, Method: "sendMessage", From: 2, To: 2, Effect: sim.EffectStatus,
		Status: http.StatusBadRequest, Description: "Bad Request: message to be replied not found"})
	d := h.Serve()
	post := harness.Post("text", "News", "first_comment", "Look", "routing", map[string]any{"include_channels": []string{"on-telegram"}})
	h.Push(d, "secret-cms", post)
	h.Drained("news")
	require.Equal(t, []string{"News"}, shown(h, harness.Telegram, chat))
	id := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where status = 'sent'`)
	require.Contains(t, ok(t, h, "why", id), "without its first comment: tg_reply_missing")
	require.Equal(t, 1, events(h, "comment_failed"))
	require.Equal(t, 1, events(h, "sent"))
	again := h.Push(d, "secret-cms", harness.Post("source_ref", "again", "text", "News", "first_comment", "Look", "routing", map[string]any{"include_channels": []string{"on-telegram"}}))
	require.EqualValues(t, 1, again.Number("deduped"), fmt.Sprint(again.Body))
	require.Equal(t, []string{"News"}, shown(h, harness.Telegram, chat))
	h.Verified()
}
