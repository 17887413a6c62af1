package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const because = "--reason=drill"

// ok runs a command that must succeed, and returns what it printed.
func ok(t *testing.T, h *harness.Harness, args ...string) string {
	t.Helper()
	result := h.Run(nil, args...)
	require.Zero(t, result.Code, "%v: %s", args, result.Stderr)
	return result.Stdout
}

// A paused channel's queue waits while the others go on, and goes at once when the
// channel is resumed; what was skipped does not go, and can be brought back.
func TestRunbookOfAChannel(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	d := h.Serve(rarely)
	require.Contains(t, ok(t, h, "channel", "pause", "on-telegram", "--for", "1h", "--dry-run", because), "dry run")
	require.Zero(t, events(h, "channel_paused"))
	require.Contains(t, ok(t, h, "channel", "pause", "on-telegram", "--for", "1h", because, "--operator", "olga"), "paused until")
	require.Equal(t, "olga", pgtest.Value[string](h.DB, `select operator from autopost.admin_audit_log`))

	h.Push(d, "secret-cms", harness.Post("text", "Recalled"))
	h.Until("the other channel has it", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 1 })
	h.Push(d, "secret-cms", harness.Post("text", "Kept"))
	h.Until("the other channel has both", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 2 })
	require.Empty(t, h.Sends(sim.Filter{Chat: chat}))

	waiting := items[struct {
		DeliveryID string `json:"delivery_id"`
		Text       string `json:"rendered_text"`
	}](t, ok(t, h, "deliveries", "list", "--channel", "on-telegram", "--json"))
	require.Len(t, waiting, 2)
	require.Equal(t, "Recalled", waiting[1].Text, "the newest comes first")
	recalled := waiting[1].DeliveryID
	ok(t, h, "deliveries", "skip", recalled, "--dry-run", because)
	require.Zero(t, events(h, "manual_skip"))
	ok(t, h, "deliveries", "skip", recalled, because)
	require.Contains(t, ok(t, h, "deliveries", "list", "--status", "dead", "--wide"), recalled)
	again := h.Run(nil, "deliveries", "skip", recalled, because)
	require.Equal(t, 1, again.Code, "what does not wait cannot be skipped")
	require.Contains(t, again.Stdout, "not waiting")

	ok(t, h, "channel", "resume", "on-telegram", because)
	h.Until("what waited is sent", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 1 })
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: chat}), 1, "what was skipped is not")
	ok(t, h, "deliveries", "requeue", recalled, "--dry-run", because)
	require.Zero(t, events(h, "manual_requeue"))
	ok(t, h, "deliveries", "requeue", recalled, because)
	h.Until("it is sent after all", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 2 })
	h.Drained("news")
	h.Verified()
}

func TestRunbookOfAGroup(t *testing.T) {
	t.Parallel()
	h, chat, other := newsroom(t)
	d := h.Serve()
	ok(t, h, "group", "disable", harness.Telegram, "--platform", harness.Telegram, because)
	require.Equal(t, 1, h.Push(d, "secret-cms", harness.Post("text", "One")).Number("enqueued"))
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: other}), 1)
	ok(t, h, "group", "resume", harness.Telegram, because)
	require.Equal(t, 2, h.Push(d, "secret-cms", harness.Post("text", "Two")).Number("enqueued"))
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: chat}), 1)

	require.Equal(t, 2, h.Run(nil, "group", "pause", harness.Telegram, because).Code, "a duration is required")
	ok(t, h, "group", "pause", harness.Telegram, "--for", "1h", because)
	require.Equal(t, 2, h.Push(d, "secret-cms", harness.Post("text", "Three")).Number("enqueued"))
	h.Until("the other channel has it", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 3 })
	require.Len(t, h.Accepted(sim.Filter{Chat: chat}), 1)
	require.Equal(t, 1, events(h, "channel_paused"))
	ok(t, h, "group", "enable", harness.Telegram, because)
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: chat}), 2)

	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'second', 'telegram', 'env:SECOND'), ('news', 'sign', 'webhook', 'env:SIGN')`)
	for to, says := range map[string]string{
		"nowhere": "auth_ref must be a credential of this workspace, got nowhere: store its secret first", "sign": "auth_ref sign is a credential of platform webhook: name one of platform telegram",
	} {
		refused := h.Run(nil, "credential", "rotate", "--channel", "on-telegram", "--to", to, because)
		require.Equal(t, 1, refused.Code)
		require.Contains(t, refused.Stderr, says)
	}
	require.JSONEq(t, `{"applied": true, "dry_run": false, "before": {"auth_ref": "telegram", "rate_group": "telegram"}, "after": {"auth_ref": "second", "rate_group": "telegram"}}`,
		ok(t, h, "credential", "rotate", "--channel", "on-telegram", "--to", "second", because, "--json"))
	require.Equal(t, 1, events(h, "auth_rotated"))
	ok(t, h, "release-stale", because)
	h.Verified()
}

func TestRunbookMisuse(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	id := "00000000-0000-7000-8000-000000000000"
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"deliveries", "skip", "00000000-0000-7000-8000-000000000000"}, 2, "--reason"},
		{[]string{"channel", "pause", "on-telegram", because}, 2, "--for"},
		{[]string{"channel", "pause", "on-telegram", "--for", "9000h", because}, 2, "seconds"},
		{[]string{"channel", "pause", "--for", "1h", because}, 2, "channel"},
		{[]string{"channel", "resume", "nobody", because}, 1, "unknown channel"},
		{[]string{"channel", "resume", "on-telegram", because, "--workspace", "none"}, 1, "none"},
		{[]string{"group", "disable", "nobody", because}, 1, "unknown group"},
		{[]string{"deliveries", "skip", because}, 2, "delivery id"},
		{[]string{"deliveries", "skip", "x", because}, 2, `"x"`},
		{[]string{"deliveries", "requeue", id, because}, 1, "1 of 1"},
		{[]string{"deliveries", "list", "--status", "lost"}, 2, "lost"},
		{[]string{"deliveries", "list", "--limit", "0"}, 2, "limit"},
		{[]string{"credential", "rotate", "--channel", "on-telegram", because}, 2, "--to"},
		{[]string{"release-stale", "--older-than", "1m", because}, 2, "--older-than"},
	} {
		result := h.Run(nil, c.args...)
		require.Equal(t, c.code, result.Code, "%v: %s", c.args, result.Stderr)
		require.Contains(t, result.Stderr, c.says, c.args)
	}
	h.Workspace("sport")
	several := h.Run(nil, "channel", "resume", "on-telegram", because)
	require.Equal(t, 2, several.Code)
	require.Contains(t, several.Stderr, "news, sport", "the choices are named")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.admin_audit_log`))
}
