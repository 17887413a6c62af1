package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Posts that wait are moved, planned into free slots and replaced from the command line. The receivers' log decides: each went once,
// with its last text, and not before its last time.
func TestPostsAreMovedAndReplaced(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	d := h.Serve()
	later := func(text string) string {
		at := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
		return h.Push(d, "secret-cms", fmt.Sprintf(`{"text": %q, "scheduled_for": %q}`, text, at)).Text("message_id")
	}
	texts := func(chat string) (all []string) {
		for _, e := range h.Accepted(sim.Filter{Chat: chat}) {
			all = append(all, e.Text)
		}
		return all
	}

	// Earlier, to an instant; and by a difference there and back.
	moved := later("Moved")
	require.Contains(t, ok(t, h, "posts", "reschedule", moved, "--scheduled-for", "+2h", "--dry-run", because), "dry run")
	ok(t, h, "posts", "reschedule", moved, "--scheduled-for", "+2h", because)
	ok(t, h, "posts", "reschedule", moved, "--scheduled-for", "-90m", because)
	soon := time.Now().Add(5 * time.Second)
	ok(t, h, "posts", "reschedule", moved, "--scheduled-for", soon.Format(time.RFC3339Nano), because)
	require.Contains(t, ok(t, h, "calendar", "--from", soon.Add(-time.Hour).Format(time.RFC3339)), moved)
	h.Until("both channels have it", func() bool { return len(texts(chat))+len(texts(other)) == 2 })
	for _, e := range h.Accepted() {
		require.False(t, e.Start.Before(soon), "%s went at %s, before %s", e.Text, e.Start, soon)
	}
	h.Drained("news")
	require.Contains(t, ok(t, h, "calendar", "--from", time.Now().Add(-time.Hour).Format(time.RFC3339)), "sent")
	again := h.Run(nil, "posts", "reschedule", moved, "--scheduled-for", "+2h", because)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "nothing waits")

	// Replaced where it waits, edited where it was sent, with one call.
	ok(t, h, "channel", "pause", "on-max", "--for", "1h", because)
	wrong := h.Push(d, "secret-cms", harness.Post("text", "Sale on Thursday")).Text("message_id")
	h.Until("one channel has it", func() bool { return len(texts(chat)) == 2 })
	h.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'sent' and channel_id = 'on-telegram' and rendered_text = 'Sale on Thursday'`)
	printed := ok(t, h, "posts", "replace", wrong, "--text", "Sale on Friday", because)
	require.Contains(t, printed, "edited")
	require.Contains(t, printed, "1 replaced")
	done(h)
	require.Equal(t, []string{"Moved", "Sale on Friday"}, shown(h, harness.Telegram, chat))
	ok(t, h, "channel", "resume", "on-max", because)
	h.Until("the other channel has the new text", func() bool { return len(texts(other)) == 2 })
	require.Equal(t, []string{"Moved", "Sale on Friday"}, texts(other), "the old text never arrived")

	// The next free slot of each channel.
	ok(t, h, "channel", "set", "on-telegram", "--settings", `{"min_gap_seconds": 3600}`, because)
	slots := items[struct{ At time.Time }](t, ok(t, h, "slots", "on-telegram", "--limit", "2", "--json"))
	require.Len(t, slots, 2)
	require.GreaterOrEqual(t, slots[1].At.Sub(slots[0].At), time.Hour)
	free := later("Free")
	ok(t, h, "posts", "reschedule", free, "--next-free", because)
	require.True(t, pgtest.Value[bool](h.DB, `select scheduled_for between now() + interval '50 minutes' and now() + interval '61 minutes' from autopost.deliveries where message_id = $1::uuid and channel_id = 'on-telegram'`, free),
		"an hour after the last sent post")
	ok(t, h, "post", "--text", "After it", "--slot", "next_free", "--channel", "on-telegram")
	require.True(t, pgtest.Value[bool](h.DB, `select max(scheduled_for) - min(scheduled_for) >= interval '1 hour' from autopost.deliveries where channel_id = 'on-telegram' and status = 'queued'`))

	// Refusals name the field and the remedy, and change nothing.
	before := pgtest.Value[string](h.DB, `select string_agg(scheduled_for::text, ' ' order by delivery_id) from autopost.deliveries`)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"posts", "reschedule", free, "--scheduled-for", "2h"}, 2, "a difference with a sign"},
		{[]string{"posts", "reschedule", free, "--scheduled-for", "+soon"}, 2, "write 2026-12-01T10:00:00+03:00, +2h or -30m"},
		{[]string{"posts", "reschedule", free}, 2, "one of --scheduled-for and --next-free must be set"},
		{[]string{"posts", "reschedule", free, "--scheduled-for", "2020-01-01T10:00:00Z"}, 2, "must be in the future"},
		{[]string{"posts", "reschedule", free, "--scheduled-for", "2999-01-01T10:00:00Z"}, 2, "must be within 100 years"},
		{[]string{"posts", "reschedule", "01989f3a-7c1e-7a2b-8d3e-0123456789ab", "--next-free"}, 1, "run autopost posts list"},
		{[]string{"deliveries", "reschedule", "01989f3a-7c1e-7a2b-8d3e-0123456789ab", "--next-free"}, 1, "could not be moved"},
		{[]string{"posts", "replace", free, "--text", ""}, 2, "must be set"},
		{[]string{"posts", "replace", "01989f3a-7c1e-7a2b-8d3e-0123456789ab", "--text", "x"}, 1, "run autopost posts list"},
		{[]string{"slots", "nowhere"}, 2, "must be a channel of the workspace"},
		{[]string{"calendar", "--from", "yesterday"}, 2, "must be a time with an offset"},
	} {
		refused := h.Run(nil, append(c.args, map[bool][]string{true: {because}}[c.args[0] == "posts" || c.args[0] == "deliveries"]...)...)
		require.Equal(t, c.code, refused.Code, "%v: %s%s", c.args, refused.Stdout, refused.Stderr)
		require.Contains(t, refused.Stderr, c.says, c.args)
	}
	require.Equal(t, before, pgtest.Value[string](h.DB, `select string_agg(scheduled_for::text, ' ' order by delivery_id) from autopost.deliveries`))
	h.Verified()
}
