package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// Many bugs never get as far as verify: a guard refuses them, and says which.
func TestGuardsRefuse(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	copyOf := func(channel, status string) string {
		return `insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status)
			select d.workspace_id, gen_random_uuid(), d.message_id, d.channel_id, d.hash_version, d.content_hash, '` + status + `'
			from autopost.deliveries d where d.channel_id = '` + channel + `'`
	}
	set := func(channel, what string) string {
		return `update autopost.deliveries set ` + what + ` where channel_id = '` + channel + `'`
	}
	for _, c := range []struct{ bug, sql, guard string }{
		{"a second live delivery of a content", copyOf("later", "queued"), "deliveries_inflight"},
		{"a delivery that begins in flight", copyOf("plain", "sending"), "AP004"},
		{"a delivery that begins dead", copyOf("plain", "dead"), "AP004"},
		{"sent without time and id", set("flying", "status = 'sent', claim_token = null, sending_lease_until = null"), "deliveries_check"},
		{"sending without a token", set("flying", "claim_token = null"), "deliveries_check"},
		{"a token while waiting", set("waiting", "claim_token = 'kept'"), "deliveries_check"},
		{"sending without a lease", set("flying", "sending_lease_until = null"), "deliveries_check"},
		{"a retry without a time", set("waiting", "next_retry_at = null"), "deliveries_check"},
		{"sent moves on", set("retry", "status = 'queued', sent_at = null"), "AP004"},
		{"a requeue without manual_requeue", set("group", "status = 'retry', next_retry_at = now()"), "AP004"},
		{"a claim that counts no attempt", set("later", "status = 'sending', claim_token = 'x', sending_lease_until = now()"), "AP004"},
		{"waiting becomes sent", set("waiting", "status = 'sent', sent_at = now(), provider_message_id = '1'"), "AP004"},
		{"an unknown status", set("waiting", "status = 'lost'"), "deliveries_status_check"},
		{"a delivery of the neighbour's message", set("later", "message_id = (select m.message_id from autopost.messages m where m.workspace_id = 'other')"), "deliveries_workspace_id_message_id_fkey"},
		{"a delivery to no channel", set("later", "channel_id = 'nowhere'"), "deliveries_workspace_id_channel_id_fkey"},
		{"the same content stored twice", `insert into autopost.messages (workspace_id, message_id, content_hash, payload)
			select m.workspace_id, gen_random_uuid(), m.content_hash, m.payload from autopost.messages m where m.workspace_id = 'w'`, "messages_workspace_id_hash_version_content_hash_key"},
		{"a gate that counts below nothing", `update autopost.channel_gates set inflight = -1`, "channel_gates_inflight_check"},
		{"a gate with calls in flight that no recovery finds", `update autopost.channel_gates set inflight = 1, listed = false`, "channel_gates_check"},
		{"a window longer than deliveries are kept", `update autopost.channels set dedup_ttl_hours = 2161`, "longer than deliveries are kept"},
		{"an event that nobody knows", `update autopost.events set action = 'vanished'`, "event_action_check"},
		{"a submission enqueued without an answer", `update autopost.submissions set status = 'enqueued' where status = 'fetching'`, "submissions_check"},
		{"a receipt twice", `insert into autopost.ingress_receipts (workspace_id, receipt_id, endpoint_id, endpoint_kind, source_ref, payload_hash, expires_at)
			select r.workspace_id, gen_random_uuid(), r.endpoint_id, r.endpoint_kind, r.source_ref, r.payload_hash, r.expires_at
			from autopost.ingress_receipts r where r.source_ref is not null`, "ingress_receipts_source_ref"},
		{"a running act without a token", `update autopost.post_acts set claim_token = null where status = 'sending'`, "post_acts_check"},
		{"an act that is done and goes on", `update autopost.post_acts set finished_at = null where status = 'done'`, "post_acts_check"},
		{"an act on nothing", `update autopost.post_acts set delivery_id = gen_random_uuid()`, "post_acts_workspace_id_delivery_id_fkey"},
		{"a secret in a credential's row", `insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'bot', 'telegram', '123:abc')`, "credential_bindings_secret_ref_check"},
	} {
		require.ErrorContains(t, h.db.Err(c.sql), c.guard, c.bug)
	}
	h.clean()
}

func TestWhoMayVerify(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	const count = `select count(*) from autopost.verify('w')`
	all, _ := h.verify()
	want := [][]any{{int64(len(all))}}

	engine := h.db.Session("engine", "engine")
	require.Equal(t, want, engine.Exec(count))
	require.ErrorContains(t, engine.Start(`select autopost.verify_i01('w')`).Err(), "permission denied", "a part of verify enters no workspace")
	require.ErrorContains(t, engine.Start(`select count(*) from autopost.deliveries`).Err(), "permission denied")
	require.ErrorContains(t, engine.Start(`select autopost.verify('nowhere')`).Err(), "AP003")

	caller := h.db.Session("caller", "caller")
	require.ErrorContains(t, caller.Start(count).Err(), "AP002")
	h.do(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', 'w')`)
	require.Equal(t, want, caller.Exec(count))
	require.ErrorContains(t, caller.Start(`select autopost.verify('other')`).Err(), "AP002")
}

// A transaction that may not write, beside one that holds every row locked.
func TestVerifyOnlyLooks(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	all, _ := h.verify()
	holder := h.db.Session("holder", "")
	holder.Exec(`begin`)
	holder.Exec(`select 1 from autopost.deliveries for update`)
	holder.Exec(`select 1 from autopost.channels for update`)
	holder.Exec(`lock table autopost.events in exclusive mode`)
	looker := h.db.Session("looker", "engine")
	looker.Exec(`begin read only`)
	require.Len(t, looker.Exec(`select v.invariant from autopost.verify('w') v`), len(all))
	looker.Exec(`commit`)
	holder.Exec(`rollback`)
}

// Samples are capped, counts are not.
func TestSampleHoldsFiveRows(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	h.raw(`update autopost.messages set content_hash = 'x' || content_hash`)
	_, broken := h.verify()
	f := broken["I40"]
	require.Equal(t, pgtest.Value[int64](h.db, `select count(*) from autopost.messages where workspace_id = 'w'`), f.Violations)
	require.Greater(t, f.Violations, int64(5))
	require.Len(t, f.Sample, 5)
}
