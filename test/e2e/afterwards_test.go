package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// shown are the texts that a chat shows now.
func shown(h *harness.Harness, platform, chat string) []string {
	id, err := strconv.ParseInt(chat, 10, 64)
	if err != nil {
		panic(err)
	}
	var texts []string
	if platform == harness.MAX {
		for _, m := range h.World.MAX.Messages(id) {
			texts = append(texts, m.Text)
		}
		return texts
	}
	for _, m := range h.World.Telegram.Messages(id) {
		texts = append(texts, m.Text)
	}
	return texts
}

// done waits until nothing is left to be done to posts that were sent.
func done(h *harness.Harness) {
	h.UntilTrue(`select not exists (select 1 from autopost.post_acts where status in ('queued', 'sending', 'retry') and due_at <= now())`)
}

func actsOf(t *testing.T, h *harness.Harness) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, row := range pgtest.Column[string](h.DB, `select kind || ' ' || status from autopost.post_acts`) {
		counts[row]++
	}
	return counts
}

// A post in forty channels is edited in each of them, while another one is sent, and no
// group goes over its rate: by what the receivers saw.
func TestAnEditOfManyChannelsKeepsTheRate(t *testing.T) {
	const rate = 20
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	chats := map[string]string{} // chat to platform
	for i := range channels {
		platform := []string{harness.Telegram, harness.MAX}[i%2]
		chats[h.Channel("news", harness.Channel{ID: fmt.Sprintf("channel-%02d", i), Platform: platform})] = platform
	}
	h.GroupRate("news", harness.Telegram, harness.Telegram, rate)
	h.GroupRate("news", harness.MAX, harness.MAX, rate)
	h.RecordChangeSlots()
	d := h.Serve()
	message := h.Push(d, "secret-cms", harness.Post("text", "Sale on Thursday")).Text("message_id")
	h.Drained("news")

	h.Push(d, "secret-cms", harness.Post("text", "Weather"))
	ok(t, h, "deliveries", "edit", "--message", message, "--text", "<b>Sale</b> on Friday", "--parse-mode", "HTML", because)
	done(h)
	h.Drained("news")
	for chat, platform := range chats {
		require.ElementsMatch(t, []string{"Sale on Friday", "Weather"}, shown(h, platform, chat), "%s %s", platform, chat)
	}
	require.Equal(t, map[string]int{"edit done": channels}, actsOf(t, h))
	for platform, method := range map[string]string{harness.Telegram: "editMessageText", harness.MAX: "PUT /messages"} {
		edits := h.World.Log.Entries(sim.Filter{Platform: platform, Method: method})
		require.Len(t, edits, channels/2, "each once")
		h.WithinRate(platform, append(edits, h.Sends(sim.Filter{Platform: platform})...), rate)
	}
	h.Verified()
}

// A daemon that dies while it edits leaves an act that another one does again, and the
// post says what it is to say.
func TestAnActIsDoneByAnotherWhenADaemonDies(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	d := h.Serve("SENDING_LEASE_SECONDS=5", "ADAPTER_TIMEOUT_MS=2000")
	message := h.Push(d, "secret-cms", harness.Post("text", "Old")).Text("message_id")
	h.Drained("news")
	h.Fault(sim.Fault{Platform: harness.Telegram, Method: "editMessageText", Effect: sim.EffectHang, To: 1})
	ok(t, h, "deliveries", "edit", "--message", message, "--text", "New", because)
	edits := sim.Filter{Chat: chat, Method: "editMessageText"}
	h.Until("the edit is on its way", func() bool { return len(h.World.Log.Entries(edits)) == 1 })
	d.Kill()
	h.Serve("SENDING_LEASE_SECONDS=5", "ADAPTER_TIMEOUT_MS=2000")
	done(h)
	require.Equal(t, []string{"New"}, shown(h, harness.Telegram, chat))
	require.Len(t, h.World.Log.Entries(edits), 2)
	require.Equal(t, 2, pgtest.Value[int](h.DB, `select attempt from autopost.post_acts where channel_id = 'on-telegram'`))
	h.Verified()
}

// A removal whose answer is lost is tried again and stands; what was asked for beside it is
// void. One that has its time waits for it, and one that a post brought along is kept.
func TestPostsAreTakenDown(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	d := h.Serve(rarely)
	message := h.Push(d, "secret-cms", harness.Post("text", "Wrong")).Text("message_id")
	h.Drained("news")
	ok(t, h, "deliveries", "pin", "--message", message, because)
	done(h)
	require.Len(t, h.World.Telegram.Pinned(mustInt(t, chat)), 1)
	require.NotEmpty(t, h.World.MAX.Pinned(mustInt(t, other)))

	ok(t, h, "deliveries", "edit", "--message", message, "--text", "Right", "--at", time.Now().Add(time.Hour).Format(time.RFC3339), because)
	h.Fault(sim.Fault{Platform: harness.Telegram, Method: "deleteMessage", Effect: sim.EffectAcceptThenDrop, To: 1})
	ok(t, h, "deliveries", "delete", "--message", message, because, "--operator", "olga")
	done(h)
	require.Empty(t, shown(h, harness.Telegram, chat))
	require.Empty(t, shown(h, harness.MAX, other))
	require.Equal(t, map[string]int{"pin done": 2, "delete done": 2, "edit void": 2}, actsOf(t, h))
	again := h.Run(nil, "deliveries", "edit", "--message", message, "--text", "Too late", because)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stdout, "the post was deleted already")
	delivery := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where channel_id = 'on-telegram'`)
	require.Contains(t, ok(t, h, "why", delivery), "removal requested by olga: drill")

	soon := time.Now().Add(3 * time.Second)
	h.Push(d, "secret-cms", harness.Post("text", "Only for a moment", "remove_at", soon.Format(time.RFC3339Nano)))
	h.Until("it is there", func() bool { return len(shown(h, harness.Telegram, chat)) == 1 })
	require.Contains(t, ok(t, h, "deliveries", "acts"), "queued")
	h.Until("it is gone", func() bool {
		return len(shown(h, harness.Telegram, chat)) == 0 && len(shown(h, harness.MAX, other)) == 0
	})
	require.False(t, time.Now().Before(soon), "not before its time")
	done(h)
	h.Verified()
}

// X takes a post back and does not change it: both are said.
func TestAPostOnXIsTakenDownAndNotEdited(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Channel("news", harness.Channel{ID: "on-x", Platform: harness.X})
	d := h.Serve()
	message := h.Push(d, "secret-cms", harness.Post("text", "Wrong")).Text("message_id")
	h.Drained("news")
	edit := h.Run(nil, "deliveries", "edit", "--message", message, "--text", "Right", because)
	require.Equal(t, 1, edit.Code)
	require.Contains(t, edit.Stdout, "x takes no edit of a post: it takes delete")
	require.Len(t, h.World.X.Posts(harness.XAccount), 1)
	ok(t, h, "deliveries", "delete", "--message", message, because)
	done(h)
	require.Empty(t, h.World.X.Posts(harness.XAccount))
	h.Verified()
}

func mustInt(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func TestAfterwardsMisuseAndRefusals(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	message := h.Push(d, "secret-cms", harness.Post("text", "One")).Text("message_id")
	h.Drained("news")
	id := "00000000-0000-7000-8000-000000000000"
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"deliveries", "delete", because}, 2, "delivery id"},
		{[]string{"deliveries", "delete", id, "--message", message, because}, 2, "must not be used with delivery ids"},
		{[]string{"deliveries", "delete", "--message", "x", because}, 2, `"x"`},
		{[]string{"deliveries", "delete", "--message", message}, 2, "--reason"},
		{[]string{"deliveries", "delete", "--message", message, "--at", "tomorrow", because}, 2, "2026-12-01T10:00:00+03:00"},
		{[]string{"deliveries", "delete", "--message", message, "--at", "2199-01-01T00:00:00Z", because}, 2, "--at must"},
		{[]string{"deliveries", "delete", "--message", id, because}, 1, "unknown message"},
		{[]string{"deliveries", "pin", id, because}, 1, "1 of 1"},
		{[]string{"deliveries", "edit", "--message", message, because}, 2, "--text"},
		{[]string{"deliveries", "edit", "--message", message, "--file", "nowhere.json", because}, 2, "nowhere.json"},
		{[]string{"deliveries", "cancel", because}, 2, "act id"},
		{[]string{"deliveries", "cancel", id, because}, 1, "1 of 1"},
	} {
		result := h.Run(nil, c.args...)
		require.Equal(t, c.code, result.Code, "%v: %s", c.args, result.Stderr)
		require.Contains(t, result.Stderr, c.says, c.args)
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.post_acts`))

	require.Contains(t, ok(t, h, "deliveries", "delete", "--message", message, "--dry-run", because), "dry run")
	ok(t, h, "deliveries", "delete", "--message", message, "--at", time.Now().Add(time.Hour).Format(time.RFC3339), because)
	waiting := items[struct {
		ActID string `json:"act_id"`
	}](t, ok(t, h, "deliveries", "acts", "--message", message, "--json"))
	require.Len(t, waiting, 2)
	ok(t, h, "deliveries", "cancel", waiting[0].ActID, waiting[1].ActID, because)
	require.Equal(t, map[string]int{"delete void": 2}, actsOf(t, h))
	h.Verified()
}
