package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A rule is checked and shown before it is stored; the daemon expands it and posts each occurrence once.
func TestPostRepeats(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	args := []string{"recurring", "add", "--endpoint-id", "cms", "--zone", "Europe/Moscow", "--starts-at", "2026-01-01T10:00", "--payloads", `[{"text": "Open"}, {"text": "Come in"}]`}
	for rule, reason := range map[string]string{
		"FREQ=MINUTELY": "must have a FREQ of HOURLY", "FREQ=DAILY;UNTIL=20250101T000000": "UNTIL before starts_at", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30": "must fire",
	} {
		refused := h.Run(nil, append(args, "--rule", rule)...)
		require.Equal(t, 2, refused.Code, "%s: %s", rule, refused.Stderr)
		require.Contains(t, refused.Stderr, reason)
	}
	shown := ok(t, h, append(args, "--rule", "FREQ=HOURLY", "--dry-run")...)
	require.Regexp(t, `(?s)(\d{4}-\d\d-\d\d \d\d:00:00 [A-Z+0-9-]+\n){10}`, shown)
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.recurrences`))
	ok(t, h, append(args, "--rule", "FREQ=HOURLY")...)
	require.Contains(t, ok(t, h, "recurring", "list"), "FREQ=HOURLY")
	id := pgtest.Value[string](h.DB, `select recurrence_id::text from autopost.recurrences`)

	h.Serve()
	h.UntilTrue(`select count(*) = 400 from autopost.occurrences where status = 'expected'`)
	// Two of them are past: the daemon stood still for a while.
	h.Exec(`update autopost.occurrences o set at = x.at
		from (select occurrence_id, now() - row_number() over (order by at) * interval '1 minute' as at from autopost.occurrences
			where workspace_id = 'news' order by occurrences.at limit 2) x
		where o.workspace_id = 'news' and x.occurrence_id = o.occurrence_id`)
	h.Exec(`update autopost.recurrences set next_at = now()`)
	h.Exec(`select pg_notify('autopost_wake', 'recurrences')`)
	h.UntilTrue(`select count(*) = 1 from autopost.occurrences where status = 'enqueued'`)
	h.Drained("news")
	sent := h.Accepted(sim.Filter{Platform: harness.Telegram})
	require.Len(t, sent, 1)
	require.Equal(t, "Open", sent[0].Text)
	require.WithinDuration(t, time.Now(), sent[0].Start, time.Minute)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.occurrences where reason = 'missed'`))
	require.Contains(t, ok(t, h, "recurring", "show", id), "missed")

	exported := ok(t, h, "config", "export")
	require.Contains(t, exported, "FREQ=HOURLY")
	h.File("config.yaml", exported)
	require.Contains(t, ok(t, h, "config", "diff", "config.yaml"), "nothing to change")
	ok(t, h, "recurring", "remove", id, because)
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.occurrences`))
}
