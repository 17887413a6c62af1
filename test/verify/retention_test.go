package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// acted makes operator actions, so that the audit log has rows of different ages.
func (h *fixture) acted() {
	h.t.Helper()
	for range 3 {
		h.do(`select autopost.pause_channel('w', 'calm', 1, 'olga', 'to see', false)`)
	}
}

// inKeeping are bugs of what keeps, and of what removes.
var inKeeping = []planted{
	{invariant: "I35", bug: "somebody rewrites what was done", plant: func(h *fixture) {
		h.acted()
		h.raw(`update autopost.admin_audit_log set operator = 'nobody' where seq = 2`)
	}},
	{invariant: "I35", bug: "a row of the audit log is taken away", plant: func(h *fixture) {
		h.acted()
		h.raw(`delete from autopost.admin_audit_log where seq = 2`)
	}},
	{invariant: "I35", bug: "the newest rows of the audit log are taken away", plant: func(h *fixture) {
		h.acted()
		h.raw(`delete from autopost.admin_audit_log where seq > 2`)
	}},
	{invariant: "I35", bug: "two rows of the audit log change places", plant: func(h *fixture) {
		h.acted()
		h.raw(`update autopost.admin_audit_log set seq = case seq when 2 then -3 else -2 end where seq in (2, 3)`)
		h.raw(`update autopost.admin_audit_log set seq = -seq where seq < 0`)
	}},
	{invariant: "I35", bug: "the audit log forks: other rows follow an earlier one", plant: func(h *fixture) {
		h.acted()
		h.raw(`update autopost.admin_audit_log l set reason = 'another story', hash = autopost.audit_hash(jsonb_populate_record(l, '{"reason": "another story"}')) where seq = 2`)
		h.raw(`delete from autopost.admin_audit_log where seq > 2`)
	}},
	{invariant: "I35", bug: "an act does not move the head", plant: func(h *fixture) {
		h.breaks("audit", "set hash = v_row.hash", "set hash = h.hash")
		h.acted()
	}},
	{invariant: "I39", bug: "the purge does not look at the time, nor at events", plant: func(h *fixture) {
		h.raw(`select autopost.set_event_strictness(false)`) // strict events refuse that
		h.breaks("purge_deliveries", "v_before := autopost.kept_from('delivery_retention_days')", "v_before := autopost.now_ts()")
		h.breaks("purge_deliveries", "t.since <= ", "false and t.since <= ")
		h.do(`select autopost.purge_deliveries('w', null)`)
	}, also: []string{"I17", "I26", "I42"}, because: "the enqueue events count what is gone, and its events, of acts too, lead nowhere"},
	{invariant: "I50", bug: "a link is used and kept", plant: func(h *fixture) {
		h.breaks("take_credential_link", "delete from autopost.credential_links l\n\twhere", "update autopost.credential_links l set requeue = false\n\twhere")
		h.linked("10 minutes")
		h.do(`select autopost.take_credential_link(repeat('a', 64), 'ann')`)
		h.do(`update autopost.credential_links set expires_at = expires_at - interval '25 hours'`)
	}},
	{invariant: "I50", bug: "the purge does not look at links", plant: func(h *fixture) {
		h.breaks("purge_sealed_secrets", "x.expires_at <= v_now", "false")
		h.linked("-25 hours")
		h.do(`select autopost.purge_sealed_secrets('w')`)
	}},
	{invariant: "I17", bug: "the purge of messages does not look at submissions", plant: func(h *fixture) {
		h.breaks("purge_messages", "v_before := least(", "v_before := greatest(autopost.now_ts(), ")
		const series = `(select m.message_id from autopost.messages m where m.payload ->> 'text' like 'much to say%')`
		h.raw(`delete from autopost.deliveries where message_id = ` + series)
		h.raw(`delete from autopost.events where message_id = ` + series)
		h.do(`select autopost.purge_messages('w', null)`)
	}},
}

// A hundred days later all that was done is gone, what waits is there, and nothing
// that is left misses anything.
func TestPurgedWorkspaceHasNoFindings(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	h.acted()
	h.ahead("100 days")
	h.all(`select autopost.recover_sending_leases('w')`, `select autopost.recover_claimed_leases('w')`, `select autopost.rearm_gates('w')`)
	for range 20 {
		h.do(`select autopost.drop_event_partitions()`)
	}
	// Sources were asked since, and did not show what they showed then.
	h.all(`select autopost.list_due_sources('w', 10)`, `select autopost.set_pull_cursor('w', 'feed', '{}')`)
	duties := []string{"purge_receipts('w')", "purge_runs('w')", "purge_submissions('w')", "purge_deliveries('w', null)", "purge_messages('w', null)", "purge_audit_log('w')"}
	for _, duty := range duties {
		h.do(`select autopost.` + duty)
		h.clean()
	}
	left := func(table string) int64 {
		return pgtest.Value[int64](h.db, `select count(*) from autopost.`+table+` where workspace_id = 'w'`)
	}
	require.ElementsMatch(t, []string{"queued", "retry"}, pgtest.Column[string](h.db, `select distinct d.status from autopost.deliveries d where d.workspace_id = 'w'`))
	require.Equal(t, pgtest.Value[int64](h.db, `select count(distinct d.message_id) from autopost.deliveries d where d.workspace_id = 'w'`), left("messages"))
	require.Equal(t, left("submissions"), left("ingest_runs"), "the run of the post that waits for its medium")
	require.Zero(t, left("ingress_receipts")+left("pull_receipts"))
	require.Positive(t, left("admin_audit_log"), "its time is not over")

	for range 2 {
		h.ahead("400 days")
		for _, duty := range duties {
			h.do(`select autopost.` + duty)
		}
	}
	require.Zero(t, left("admin_audit_log"))
	h.acted()
	h.do(`select autopost.rearm_gates('w')`)
	h.clean()
}

// linked begins the link of an account that expires after this time.
func (h *fixture) linked(after string) {
	h.t.Helper()
	h.do(`insert into autopost.credential_links (workspace_id, state_hash, auth_ref, platform, redirect, sealed, requeue, operator, reason, expires_at)
		values ('w', repeat('a', 64), 'x', 'x', 'https://a.example/oauth', '{}', false, 'ann', 'r', autopost.now_ts() + $1::interval)`, after)
}
