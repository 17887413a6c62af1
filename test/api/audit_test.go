package api

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// recorded are the places where writes without an audit row are recorded: their runs and rows.
var recorded = map[string]string{
	"create-draft": `select count(*)::int from autopost.drafts where workspace_id = 'acme'`,
	"put-draft":    `select sum(version)::int from autopost.drafts where workspace_id = 'acme'`,
	"submit-draft": `select count(*)::int from autopost.ingest_runs where workspace_id = 'acme' and kind = 'api'`,
	"submit-event": `select count(*)::int from autopost.ingest_runs where workspace_id = 'acme' and kind = 'event'`,
	"submit-post":  `select count(*)::int from autopost.ingest_runs where workspace_id = 'acme' and kind = 'api'`,
	"upload-media": `select count(*)::int from autopost.media_origin where workspace_id = 'acme'`,
}

// Every write leaves an audit row with operator, action and reason. A dry run and a refusal leave none.
func TestEveryWriteIsRecorded(t *testing.T) {
	t.Parallel()
	w := open(t)
	judged := 0
	for _, o := range w.operations {
		// Nothing is stale here; the function has its own contract. Settings are changed by people alone: see test/pages.
		if !o.writes() || o.ID == "release-stale" || o.ID == "put-setting" || slices.Contains(personal, o.ID) {
			continue
		}
		judged++
		if o.ID == "requeue-credential" {
			w.Exec(`update autopost.channels set auth_held = true, paused_until = 'infinity' where workspace_id = 'acme' and channel_id = $1`, w.ids["acme"]["channels"])
		}
		if o.ID == "confirm-alert-target" {
			w.Exec(`update autopost.alert_targets set kind = 'email', address = 'ops@example.com', auth_ref = null, confirmed_at = null where workspace_id = 'acme'`)
			w.Exec(`insert into autopost.alert_messages (workspace_id, message_id, target_id, kind, status, subject, text, body, created_at, ended_at)
				select t.workspace_id, m.message_id, t.target_id, m.kind, 'sent', m.subject, m.text, m.body || '{"code": "0123456789"}', now(), now()
				from autopost.alert_targets t cross join lateral autopost.confirm_message(t, now()) m where t.workspace_id = 'acme'`)
		}
		query, known := recorded[o.ID]
		if !known {
			query = `select count(*)::int from autopost.admin_audit_log where workspace_id = 'acme'`
		}
		count := func() int { return pgtest.Value[int](w.DB, query) }
		before := count()
		c := w.request(o, "acme")
		c.key = w.keys["owner"]
		for _, p := range o.Parameters {
			if p.Name == "dry_run" {
				dry := c
				dry.path += "?dry_run=true"
				held := w.fingerprint("acme")
				r := w.ask(dry)
				require.Equal(t, 200, r.status, "%s: %s", o.ID, r.raw)
				require.Equal(t, held, w.fingerprint("acme"), "%s: a dry run changed something", o.ID)
			}
		}
		r := w.ask(c)
		require.Less(t, r.status, 300, "%s: %s", o.ID, r.raw)
		require.Greater(t, count(), before, "%s left no record", o.ID)
		if !known {
			row := w.JSON(`select to_jsonb(a) from autopost.admin_audit_log a where a.workspace_id = 'acme' order by a.seq desc limit 1`)
			require.Regexp(t, `^key:[0-9a-f-]{36}$`, row["operator"], o.ID)
			require.NotEmpty(t, row["reason"], o.ID)
		}
	}
	require.GreaterOrEqual(t, judged, 20)
	// Builders say sent without a call.
	require.Empty(t, pgtest.Column[string](w.DB, `select to_jsonb(v)::text from autopost.verify('acme') v where v.violations > 0 and v.invariant <> 'I21'`))
}
