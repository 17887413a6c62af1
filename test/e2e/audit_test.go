package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// The audit log is checked from the command line, also against a head that was kept elsewhere.
func TestAuditLogIsChecked(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "channel", "set", "on-max", "--title", "One")
	head := strings.TrimSpace(ok(t, h, "audit", "head"))
	ok(t, h, "channel", "set", "on-max", "--title", "Two")
	require.Contains(t, ok(t, h, "audit", "list"), "title: One → Two")
	require.Contains(t, ok(t, h, "audit", "verify", "--head", head), "unchanged up to row 2")
	require.Equal(t, 2, h.Run(nil, "audit", "verify", "--head", "nonsense").Code)
	other := h.Run(nil, "audit", "verify", "--head", "2:"+strings.Split(head, ":")[1])
	require.Equal(t, 1, other.Code)
	require.Contains(t, other.Stdout, "the row of the given head is missing or was changed")
	h.Exec(`alter table autopost.admin_audit_log disable trigger user`)
	h.Exec(`update autopost.admin_audit_log set reason = 'else' where seq = 1`)
	changed := h.Run(nil, "audit", "verify")
	require.Equal(t, 1, changed.Code)
	require.Contains(t, changed.Stdout, "it was changed")
}

// A post is skipped in all channels where it waits.
func TestPostIsSkipped(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "post", "--text", "Recalled")
	message := pgtest.Value[string](h.DB, `select message_id::text from autopost.messages`)
	require.Equal(t, 2, h.Run(nil, "posts", "skip", message).Code, "a reason is required")
	require.Contains(t, ok(t, h, "posts", "skip", message, because, "--dry-run"), "skipped: 2 deliveries")
	require.Contains(t, ok(t, h, "posts", "skip", message, because), "skipped: 2 deliveries")
	again := h.Run(nil, "posts", "skip", message, because)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "nothing waits")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'queued'`))
	d := h.Serve()
	home, err := h.Get(d.URL+"/", "")
	require.NoError(t, err)
	require.Equal(t, 200, home.Status)
	h.Endpoint("news", "second", "secret-second")
	several := h.Run(nil, "post", "--text", "x")
	require.Equal(t, 2, several.Code)
	require.Contains(t, several.Stderr, "--endpoint must be given, because the workspace has several: cms, second")
	ok(t, h, "post", "--text", "x", "--endpoint", "second")
}
