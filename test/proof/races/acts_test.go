package races_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// act is one call in a transaction of its own, on the world that stage_test.go prepares. Words in braces are
// its subjects: {name} is a delivery's id, {name.token} its claim, {name.text} its content, {name.message} its message, {by} who acts and why.
type act struct {
	function string // "" for a plain edit of rows
	variant  string
	sql      string
	// again says that the act leaves alone what somebody holds at that moment: only after a second time has it done its work.
	again bool
}

func (a act) String() string { return a.function + " " + a.variant }

const (
	sent      = `{"ok": true, "provider_message_id": "m1"}`
	limited   = `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "http_429", "retry_after_ms": 5000}}`
	overload  = `{"ok": false, "error": {"category": "TRANSIENT", "scope": "platform", "code": "http_429", "retry_after_ms": 5000}}`
	down      = `{"ok": false, "error": {"category": "PERMANENT", "scope": "platform", "code": "http_503"}}`
	forbidden = `{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "http_403"}}`
	refused   = `{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "http_401"}}`
	moved     = `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "chat_gone", "moved": {"from": "@a", "to": "-1009"}}}`
	movedToo  = `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "chat_gone", "moved": {"from": "@a", "to": "-1008"}}}`
	timedOut  = `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}`
)

// refusedTarget is the error of an alert target that refuses notices.
const refusedTarget = `{"category": "PERMANENT", "scope": "channel", "code": "http_403", "known": true, "message": "no"}`

// sealedSecret is what finish_refresh and put_sealed_secret are given.
const sealedSecret = `{"version": 1, "key_id": "k1", "wrapped_key": "AAAA", "sealed": "BBBB"}`

// inOrder locks rows as the functions do: many at once only in the project's order.
const inOrder = `select x.channel_id from autopost.channels x where x.workspace_id = 'w' order by x.channel_id for no key update of x`

// acts are all that writes. A new public function joins by one line here, or, if it writes nothing, by its name in readers.
var acts = []act{
	// In.
	{"enqueue_messages_and_deliveries", "a fresh post", `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', '{"text": "fresh"}')`, false},
	{"enqueue_messages_and_deliveries", "what failed", `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', jsonb_build_object('text', {failed.text}))`, false},
	{"enqueue_messages_and_deliveries", "what is in flight", `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', jsonb_build_object('text', {started.text}))`, false},
	{"enqueue_messages_and_deliveries_batch", "fresh, failed, dead", `select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api',
		jsonb_build_array('{"text": "fresh"}', jsonb_build_object('text', {failed.text}), jsonb_build_object('text', {dead.text}), '{"text": "fresher"}'))`, false},
	{"enqueue_messages_and_deliveries_batch", "dead, failed, fresh", `select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api',
		jsonb_build_array('{"text": "fresher"}', jsonb_build_object('text', {dead.text}), jsonb_build_object('text', {failed.text}), '{"text": "fresh"}'))`, false},
	{"receive_push", "with a source_ref", `select autopost.receive_push('w', 'in', '[{"text": "fresh", "source_ref": "1"}, {"text": "fresher", "source_ref": "2"}]')`, false},
	{"receive_push", "backwards, one without a source_ref", `select autopost.receive_push('w', 'in', '[{"text": "fresher", "source_ref": "2"}, {"text": "fresh"}, {"text": "fresh", "source_ref": "1"}]')`, false},
	{"receive_push", "media to fetch", `select autopost.receive_push('w', 'in', '[{"text": "x", "media": [{"type": "image", "url": "https://example.org/x.png"}]}]')`, false},
	{"receive_signed_push", "", `select autopost.receive_signed_push('w', 'in', 'msg-1', '[{"text": "fresher", "source_ref": "2"}, {"text": "fresh"}]')`, false},
	{"receive_signed_push", "the same id, other posts", `select autopost.receive_signed_push('w', 'in', 'msg-1', '[{"text": "fresh", "source_ref": "1"}]')`, false},
	{"receive_update", "the bot was removed", `select autopost.receive_update('w', 'bot', '{"update_id": 1, "my_chat_member": {"chat": {"id": -1, "type": "channel", "username": "a"}, "date": 1795000000, "new_chat_member": {"status": "kicked"}}}')`, false},
	{"receive_update", "the same, and back", `select autopost.receive_update('w', 'bot', '{"update_id": 2, "my_chat_member": {"chat": {"id": -1, "type": "channel", "username": "a"}, "date": 1795000000, "new_chat_member": {"status": "creator"}}}')`, false},
	{"receive_event", "of an own type", `select autopost.receive_event('w', 'in', '{"event": "offer", "payload": {"title": "fresh"}, "source_ref": "1"}')`, false},
	{"receive_event", "the same without a source_ref", `select autopost.receive_event('w', 'in', '{"event": "offer", "payload": {"title": "fresh"}}')`, false},
	{"ingest_pull_chunk", "two items", `select autopost.ingest_pull_chunk('w', 'feed', 'feed',
		'[{"source_ref": "1", "payload": {"text": "fresh"}}, {"source_ref": "2", "payload": {"text": "fresher"}, "cursor": {"n": 2}}]')`, false},
	{"submit_post", "", `select autopost.submit_post('w', 'in', 'command', '{"text": "fresher"}')`, false},
	{"run_fanout", "", `select autopost.run_fanout('w', 10)`, true},
	{"guard_ingress", "", `select autopost.guard_ingress('w', 'in', 10, 1)`, false},
	{"guard_ingress", "too large", `select autopost.guard_ingress('w', 'in', 100000000, 1)`, false},
	{"start_ingest_run", "", `select autopost.start_ingest_run('w', 'pull', 'feed', 'feed')`, false},
	{"finish_ingest_run", "", `select autopost.finish_ingest_run('w', {run}, '{"seen": 1}')`, false},
	{"claim_sources", "", `select * from autopost.claim_sources('w', 'run', 10)`, true},
	{"list_due_sources", "", `select * from autopost.list_due_sources('w', 10)`, true},
	{"set_pull_cursor", "", `select autopost.set_pull_cursor('w', 'feed', '{"n": 1}')`, false},
	{"fail_poll", "", `select autopost.fail_poll('w', 'feed', '{"code": "http_500", "message": "no"}')`, false},
	{"fail_poll", "gone", `select autopost.fail_poll('w', 'feed', '{"code": "http_410", "message": "no", "gone": true}')`, false},
	{"claim_submissions", "", `select * from autopost.claim_submissions('w', 'run', 10)`, true},
	{"extend_submission", "", `select autopost.extend_submission('w', {fetching}, {fetching.token})`, false},
	{"commit_submission", "fetched", `select autopost.commit_submission('w', {fetching}, {fetching.token}, '{"ok": true, "media": [{"index": 0, "blob_ref": "{blob}"}]}')`, false},
	{"commit_submission", "not fetched", `select autopost.commit_submission('w', {fetching}, {fetching.token}, '{"ok": false, "error": {"category": "PERMANENT", "code": "media_fetch_404"}}')`, false},
	{"put_media_origin", "", `select autopost.put_media_origin('w', '{blob}', 'file:///x', 'image/png', 10, 'image', 1, 1)`, false},
	{"put_media_blob", "", `select autopost.put_media_blob('w', '{blob}', 'telegram', 'bot', 'image', 'f', null)`, false},
	// Out.
	{"touch_run", "", `select autopost.touch_run('posttest')`, false},
	{"observe_clock", "", `select autopost.observe_clock('posttest', 0)`, false},
	{"begin_dispatch", "", `select autopost.begin_dispatch('posttest', 60)`, false},
	{"end_dispatch", "", `select autopost.end_dispatch('posttest')`, false},
	{"claim_deliveries", "", `select * from autopost.claim_deliveries('w', 'run', 100)`, true},
	{"claim_within", "", `select * from autopost.claim_within('w', 'run', 100, '[{"room": 1}]')`, true},
	{"start_call", "", `select autopost.start_call('w', {idle}, {idle.token})`, false},
	{"start_call", "late for its slot", `select autopost.start_call('w', {late}, {late.token})`, false},
	{"start_call", "repeated", `select autopost.start_call('w', {started}, {started.token})`, false},
	{"start_call_batch", "", `select autopost.start_call_batch('w', jsonb_build_array({late.item}, {started.item}, {idle.item}))`, false},
	{"record_series_progress", "", `select autopost.record_series_progress('w', {started}, {started.token}, '{"step": "text", "ids": ["1"], "items": []}')`, false},
	{"extend_lease", "", `select autopost.extend_lease('w', {started}, {started.token}, 600)`, false},
	{"release_claims", "", `select autopost.release_claims('w', array[{late.token}, {idle.token}, {started.token}])`, false},
	{"release_lost", "", `select autopost.release_lost('w', 'posttest', array[{late.token}])`, false},
	{"commit_outcome", "sent", `select autopost.commit_outcome('w', {started}, {started.token}, '` + sent + `')`, false},
	{"commit_outcome", "channel limited", `select autopost.commit_outcome('w', {started}, {started.token}, '` + limited + `')`, false},
	{"commit_outcome", "another channel limited", `select autopost.commit_outcome('w', {late}, {late.token}, '` + limited + `')`, false},
	{"commit_outcome", "platform limited", `select autopost.commit_outcome('w', {started}, {started.token}, '` + overload + `')`, false},
	{"commit_outcome", "platform down", `select autopost.commit_outcome('w', {late}, {late.token}, '` + down + `')`, false},
	{"commit_outcome", "channel gone", `select autopost.commit_outcome('w', {started}, {started.token}, '` + forbidden + `')`, false},
	{"commit_outcome", "credential refused", `select autopost.commit_outcome('w', {late}, {late.token}, '` + refused + `')`, false},
	{"commit_outcome", "chat moved", `select autopost.commit_outcome('w', {started}, {started.token}, '` + moved + `')`, false},
	{"commit_outcome", "the chat of another channel moved", `select autopost.commit_outcome('w', {late}, {late.token}, '` + movedToo + `')`, false},
	{"commit_outcome", "unknown", `select autopost.commit_outcome('w', {started}, {started.token}, '` + timedOut + `')`, false},
	{"commit_outcome", "after the lease", `select autopost.commit_outcome('w', {expired}, {expired.token}, '` + sent + `')`, false},
	{"commit_outcome_batch", "", `select autopost.commit_outcome_batch('w', jsonb_build_array({late.item} || '{"outcome": ` + down + `}', {started.item} || '{"outcome": ` + limited + `}',
		{idle.item} || '{"outcome": ` + timedOut + `}'))`, false},
	{"mark_sent", "", `select autopost.mark_sent('w', {started}, {started.token}, 'm2', null, null)`, false},
	{"mark_sent_batch", "", `select autopost.mark_sent_batch('w', jsonb_build_array({expired.item} || '{"provider_message_id": "m3"}', {started.item} || '{"provider_message_id": "m2"}'))`, false},
	{"schedule_retry", "", `select autopost.schedule_retry('w', {started}, {started.token}, '{"category": "TRANSIENT", "scope": "delivery", "code": "http_502"}')`, false},
	{"schedule_retry_batch", "", `select autopost.schedule_retry_batch('w', jsonb_build_array({started.item} || '{"error": {"category": "TRANSIENT", "scope": "delivery", "code": "http_502"}}',
		{late.item} || '{"error": {"category": "TRANSIENT", "scope": "platform", "code": "http_429", "retry_after_ms": 5000}}'))`, false},
	{"fail_permanent", "", `select autopost.fail_permanent('w', {started}, {started.token}, '{"category": "PERMANENT", "scope": "channel", "code": "http_403"}')`, false},
	{"fail_permanent_batch", "", `select autopost.fail_permanent_batch('w', jsonb_build_array({late.item} || '{"error": {"category": "PERMANENT", "scope": "channel", "code": "http_403"}}',
		{started.item} || '{"error": {"category": "PERMANENT", "scope": "platform", "code": "http_503"}}'))`, false},
	{"resolve_unknown", "found", `select autopost.resolve_unknown('w', {held}, 'found', 'm4', {by})`, false},
	{"resolve_unknown", "absent", `select autopost.resolve_unknown('w', {held}, 'absent', null, {by})`, false},
	// Afterwards.
	{"request_acts", "delete", `select autopost.request_acts('w', 'delete', null, array[{sent}, {started}]::uuid[], null, null, {by}, false)`, false},
	{"request_acts", "edit", `select autopost.request_acts('w', 'edit', null, array[{sent}]::uuid[], '{"text": "changed"}', null, {by}, false)`, false},
	{"cancel_acts", "", `select autopost.cancel_acts('w', array[{act}, {doing}]::uuid[], {by}, false)`, false},
	{"claim_acts", "", `select * from autopost.claim_acts('w', 'run', 10)`, true},
	{"start_act", "", `select autopost.start_act('w', {doing}, {doing.token})`, false},
	{"commit_act", "done", `select autopost.commit_act('w', {doing}, {doing.token}, '{"ok": true}')`, false},
	{"commit_act", "channel limited", `select autopost.commit_act('w', {doing}, {doing.token}, '` + limited + `')`, false},
	{"commit_act", "unknown", `select autopost.commit_act('w', {doing}, {doing.token}, '` + timedOut + `')`, false},
	{"commit_act", "refused", `select autopost.commit_act('w', {doing}, {doing.token}, '` + forbidden + `')`, false},
	// Watch.
	{"recover_sending_leases", "", `select autopost.recover_sending_leases('w')`, false},
	{"recover_claimed_leases", "", `select autopost.recover_claimed_leases('w')`, false},
	{"rearm_gates", "", `select autopost.rearm_gates('w')`, true},
	{"ensure_event_partitions", "", `select autopost.ensure_event_partitions()`, false},
	{"set_event_strictness", "", `select autopost.set_event_strictness(not autopost.events_are_strict())`, false},
	{"refresh_statistics", "", `select autopost.refresh_statistics()`, false},
	{"expire_auth_lost", "", `select autopost.expire_auth_lost('w')`, false},
	{"close_ingress_floods", "", `select autopost.close_ingress_floods('w')`, true},
	{"begin_refresh", "", `select autopost.begin_refresh('w', 'g', 0, '', null)`, false},
	{"finish_refresh", "", `select autopost.finish_refresh('w', 'g', '` + sealedSecret + `', 3600)`, false},
	{"fail_refresh", "refused", `select autopost.fail_refresh('w', 'g', 'posttest', 0, '', '{"category": "PERMANENT", "scope": "channel", "code": "auth_lost"}')`, false},
	{"fail_refresh", "later", `select autopost.fail_refresh('w', 'g', 'posttest', 0, '', '{"category": "TRANSIENT", "scope": "platform", "code": "http_500"}')`, false},
	{"list_due_subscriptions", "", `select autopost.list_due_subscriptions('w', 10)`, true},
	{"begin_subscription", "", `select autopost.begin_subscription('w', 'bot', '{"url": "https://a", "updates": []}', '{}', repeat('d', 64))`, false},
	{"finish_subscription", "", `select autopost.finish_subscription('w', 'bot', repeat('d', 64), null)`, false},
	{"finish_subscription", "refused", `select autopost.finish_subscription('w', 'bot', null, '{"category": "PERMANENT", "scope": "channel", "code": "tg_unauthorized"}')`, false},
	{"list_unasked_chats", "", `select autopost.list_unasked_chats('w', 10)`, true},
	{"record_chat_rights", "", `select autopost.record_chat_rights('w', 'telegram', 'g', '-1', '-infinity', '{"may_post": true}')`, false},
	{"warn_expiring", "", `select autopost.warn_expiring('w')`, true},
	{"purge_sealed_secrets", "", `select autopost.purge_sealed_secrets('w')`, true},
	{"enqueue_webhooks", "", `select autopost.enqueue_webhooks('w')`, true},
	{"claim_webhooks", "", `select autopost.claim_webhooks('w', 10)`, true},
	{"commit_webhook", "gone", `select autopost.commit_webhook('w', 'crm', {result}, {result.token}, '{"http_status": 410}')`, false},
	{"commit_webhook_batch", "delivered", `select autopost.commit_webhook_batch('w', jsonb_build_array(jsonb_build_object('webhook_id', 'crm', 'event_id', {result}, 'claim_token', {result.token}, 'outcome', '{"http_status": 200}'::jsonb)))`, false},
	{"purge_webhook_sends", "", `select autopost.purge_webhook_sends('w')`, true},
	{"check_alerts", "", `select autopost.check_alerts('w')`, true},
	{"check_installation", "", `select autopost.check_installation()`, true},
	{"note_cluster", "", `select autopost.note_cluster()`, true},
	{"confirm_restore", "", `select autopost.confirm_restore({by}, false)`, true},
	{"check_integrity", "", `select autopost.check_integrity('w')`, true},
	{"report_duty", "", `select autopost.report_duty('run', 'watch', now(), 'c', 'no')`, false},
	{"claim_notices", "", `select autopost.claim_notices('w', 10)`, true},
	{"finish_notice", "sent", `select autopost.finish_notice('w', {notice}, {notice.token}, null)`, false},
	{"finish_notice", "refused", `select autopost.finish_notice('w', {notice}, {notice.token}, '` + refusedTarget + `')`, false},
	{"drop_event_partitions", "", `select autopost.drop_event_partitions()`, false},
	{"purge_receipts", "", `select autopost.purge_receipts('w')`, false},
	{"purge_runs", "", `select autopost.purge_runs('w')`, false},
	{"purge_submissions", "", `select autopost.purge_submissions('w')`, false},
	{"purge_deliveries", "", `select autopost.purge_deliveries('w', null)`, false},
	{"purge_messages", "", `select autopost.purge_messages('w', null)`, false},
	{"purge_audit_log", "", `select autopost.purge_audit_log('w')`, false},
	{"forget_media_origin", "", `select autopost.forget_media_origin('w', '{blob}')`, false},
	{"begin_media_removal", "", `select autopost.begin_media_removal('{blob}')`, false},
	{"end_media_removal", "", `select autopost.end_media_removal('{blob}', 'token')`, false},
	{"remove_media_origin", "", `select autopost.remove_media_origin('w', '{blob}')`, false},
	// Operate.
	{"plan", "", `select autopost.plan('w', '{"text": "fresh"}', null)`, false},
	{"put_template", "", `select autopost.put_template('w', 'digest', '*', '{"body": "{title}", "vars": ["title"]}', {by})`, false},
	{"enable_template", "", `select autopost.enable_template('w', 'digest', '*', 1, false, {by})`, false},
	{"put_source", "a new one", `select autopost.put_source('w', 'wire', '{"kind": "rss", "config_json": {"url": "https://example.org/feed"}}', {by}, false)`, false},
	{"put_source", "disabled", `select autopost.put_source('w', 'feed', '{"enabled": false}', {by}, false)`, false},
	{"poll_source_now", "", `select autopost.poll_source_now('w', 'feed', {by}, false)`, false},
	{"decide_submission", "", `select autopost.decide_submission('w', {fetching}, 'approve', '{}', {by})`, false},
	{"decide_submission", "approve a waiting one", `select autopost.decide_submission('w', {pending}, 'approve', '{}', {by})`, false},
	{"decide_submission", "reject it", `select autopost.decide_submission('w', {pending}, 'reject', '{}', {by})`, false},
	{"edit_submission", "a waiting one", `select autopost.edit_submission('w', {pending}, '{"text": "edited"}', {by}, false)`, false},
	{"put_x_post_config", "", `select autopost.put_x_post_config('w', '{"mode": "hold"}', {by}, false)`, false},
	{"put_event_type", "", `select autopost.put_event_type('w', 'offer', '{"enabled": false}', {by}, false)`, false},
	{"backfill_x_posts", "", `select autopost.backfill_x_posts('w', 'in', jsonb_build_array(jsonb_build_object('event', 'offer', 'payload', '{"title": "fresh"}'::jsonb,
		'posted_at', autopost.utc(clock_timestamp()), 'tweet_id', '1')), {by}, false)`, false},
	{"edit_submission", "", `select autopost.edit_submission('w', {fetching}, '{"text": "edited"}', {by}, false)`, false},
	{"expire_submissions", "", `select autopost.expire_submissions('w')`, false},
	{"retry_submission", "", `select autopost.retry_submission('w', {fetching}, {by}, false)`, false},
	{"requeue_auth_lost", "of a bound credential", `select autopost.requeue_auth_lost('w', 'g', {by}, false)`, false},
	{"requeue_auth_lost", "", `select autopost.requeue_auth_lost('w', 'bot', {by}, false)`, false},
	{"manual_requeue", "", `select autopost.manual_requeue('w', array[{dead}, {failed}]::uuid[], {by})`, false},
	{"skip_deliveries", "", `select autopost.skip_deliveries('w', array[{held}, {waiting}, {failed}]::uuid[], {by}, false)`, false},
	{"reschedule", "", `select autopost.reschedule('w', array[{waiting}, {failed}, {started}]::uuid[], now() + interval '1 hour', {by}, false)`, false},
	{"reschedule", "to the next free slots", `select autopost.reschedule('w', array[{failed}, {waiting}]::uuid[], null, {by}, false)`, false},
	{"shift_deliveries", "", `select autopost.shift_deliveries('w', array[{waiting}, {held}]::uuid[], 60, {by}, false)`, false},
	{"reschedule_post", "", `select autopost.reschedule_post('w', {waiting.message}, '{"slot": "next_free"}', {by}, false)`, false},
	{"replace_post", "", `select autopost.replace_post('w', {waiting.message}, '{"text": "fresh"}', {by}, false)`, false},
	{"replace_post", "by what failed", `select autopost.replace_post('w', {waiting.message}, jsonb_build_object('text', {failed.text}), {by}, false)`, false},
	{"edit_post", "sent", `select autopost.edit_post('w', {sent.message}, '{"text": "changed"}', null, {by}, false)`, false},
	{"enqueue_messages_and_deliveries", "in the next free slot", `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', '{"text": "fresher", "slot": "next_free"}')`, false},
	{"skip_post", "", `select autopost.skip_post('w', {waiting.message}, {by}, false)`, false},
	{"pause_channel", "", `select autopost.pause_channel('w', 'a', 3600, {by}, false)`, false},
	{"resume_channel", "", `select autopost.resume_channel('w', 'a', {by}, false)`, false},
	{"disable_group", "", `select autopost.disable_group('w', null, 'g', {by}, false)`, false},
	{"enable_group", "", `select autopost.enable_group('w', 'telegram', 'g', {by}, false)`, false},
	{"rotate_auth", "of a channel at rest", `select autopost.rotate_auth('w', 'c', 'other', 'g', {by}, false)`, false},
	{"rotate_auth", "of a channel at work", `select autopost.rotate_auth('w', 'a', 'other', 'h', {by}, false)`, false},
	{"put_sealed_secret", "", `select autopost.put_sealed_secret('w', 'g', 'telegram', '` + sealedSecret + `', 'set', 86400, {by}, false)`, false},
	{"record_upload", "", `select autopost.put_media_blob('w', '{blob}', 'telegram', 'bot', 'image', 'f', null), autopost.record_upload('w', 'telegram', 'bot', '{blob}', 'image', '{"media_metadata": 1}', {by})`, false},
	{"record_credential_check", "", `select autopost.record_credential_check('w', 'g', '{"account": "@bot", "rights": []}')`, false},
	{"add_data_key", "", `select autopost.add_data_key('w', 1, 'k1', 'AAAA')`, false},
	{"rewrap_data_key", "", `select autopost.rewrap_data_key('w', 1, 'k1', 'k2', 'AAAA')`, false},
	{"create_raw_link", "", `select autopost.create_raw_link('w', gen_random_uuid(), repeat('a', 64), {by})`, false},
	{"name_rejected", "", `select autopost.name_rejected('w', gen_random_uuid())`, true},
	{"use_raw_link", "", `select autopost.use_raw_link('w', repeat('a', 64))`, false},
	{"rewrap_secret", "", `select autopost.rewrap_secret('w', 'h', 1, 'k1', 'k2', 'AAAA')`, false},
	{"acknowledge_alert", "", `select autopost.acknowledge_alert('w', a.alert_id, {by}, false) from autopost.alerts a`, false},
	{"put_alert_target", "a new one", `select autopost.put_alert_target('w', 'mail', '{"kind": "email", "address": "ops@example.org"}', {by}, false)`, false},
	{"put_alert_target", "disabled", `select autopost.put_alert_target('w', 'ops', '{"enabled": false}', {by}, false)`, false},
	{"remove_alert_target", "", `select autopost.remove_alert_target('w', 'ops', {by}, false)`, false},
	{"confirm_alert_target", "", `select autopost.confirm_alert_target('w', 'spare', 'abc', {by}, false)`, false},
	{"test_alert_target", "", `select autopost.test_alert_target('w', 'spare', {by}, false)`, false},
	{"release_stale", "", `select autopost.release_stale('w', 600, {by}, false)`, false},
	{"put_endpoint", "a new one", `select autopost.put_endpoint('w', 'more', jsonb_build_object('kind', 'webhook_push', 'secret_hash', repeat('e', 64)), {by}, false)`, false},
	{"put_endpoint", "another rate", `select autopost.put_endpoint('w', 'in', '{"ingress_rps": 7}', {by}, false)`, false},
	{"rotate_endpoint", "", `select autopost.rotate_endpoint('w', 'in', jsonb_build_object('secret_hash', repeat('f', 64)), {by}, false)`, false},
	{"disable_endpoint", "", `select autopost.disable_endpoint('w', 'feed', {by}, false)`, false},
	{"put_workspace", "", `select autopost.put_workspace('w', '{"name": "another"}', {by}, false)`, false},
	{"set_workspace_status", "", `select autopost.set_workspace_status('w', 'active', {by}, false)`, false},
	{"put_channel", "a new one", `select autopost.put_channel('w', 'd', '{"platform": "telegram", "target_id": "@d", "auth_ref": "bot", "enabled": false}', {by}, false)`, false},
	{"put_channel", "more at once", `select autopost.put_channel('w', 'a', '{"max_parallel": 7}', {by}, false)`, false},
	{"put_channel", "another credential", `select autopost.put_channel('w', 'c', '{"auth_ref": "another", "rate_group": "h"}', {by}, false)`, false},
	{"put_channel", "another target and credential", `select autopost.put_channel('w', 'c', '{"target_id": "@elsewhere", "auth_ref": "third"}', {by}, false)`, false},
	{"remove_channel", "", `select autopost.remove_channel('w', 'd', {by}, false)`, false},
	{"put_rate_group", "", `select autopost.put_rate_group('w', 'telegram', 'g', '{"rate_rps": 900}', {by}, false)`, false},
	{"put_quota", "of a channel", `select autopost.put_quota('w', 'channel:b', 3600, '{"max_sends": 1000}', {by}, false)`, false},
	{"put_retry_policy", "", `select autopost.put_retry_policy('w', 'telegram', '*', '{"base_ms": 500}', {by}, false)`, false},
	{"put_budget", "", `select autopost.put_budget('w', 'bot', '{"month_usd": 1000}', {by}, false)`, false},
	{"put_budget", "lifted", `with b as materialized (select autopost.put_budget('w', 'bot', '{"month_usd": 1000}', {by}, false) as a)
		select autopost.put_budget('w', 'bot', '{"month_usd": null}', {by}, false) from b where a is not null`, false},
	{"put_quota", "of a group", `select autopost.put_quota('w', 'group:telegram/g', 3600, '{"max_sends": 1000}', {by}, false)`, false},
	{"delete_quota", "", `select autopost.delete_quota('w', 'channel:b', 3600, {by}, false)`, false},
	{"put_credential_binding", "", `select autopost.put_credential_binding('w', 'bot', '{"platform": "telegram", "secret_ref": "env:BOT"}', {by}, false)`, false},
	{"apply_config", "", `select autopost.apply_config('w', '[{"kind": "workspace", "id": "w", "fields": {"name": "third"}},
		{"kind": "group", "id": "telegram/g", "fields": {"rate_rps": 800}}, {"kind": "template", "id": "digest", "fields": {"body": "{title}"}},
		{"kind": "channel", "id": "c", "fields": {"max_parallel": 3, "target_id": "@nowhere"}}, {"kind": "channel", "id": "a", "fields": {"max_parallel": 8}},
		{"kind": "quota", "id": "channel:b/3600", "fields": {"max_sends": 2000}}, {"kind": "quota", "id": "group:telegram/g/60", "fields": {"max_sends": 2000}}]', {by}, false)`, false},
	{"apply_config", "sources and endpoints", `select autopost.apply_config('w', '[{"kind": "channel", "id": "b", "fields": {"max_parallel": 9}},
		{"kind": "source", "id": "feed", "fields": {"kind": "rss", "config_json": {"url": "https://example.org/other"}}},
		{"kind": "source", "id": "new", "fields": {"kind": "rss", "config_json": {"url": "https://example.org/new"}}},
		{"kind": "endpoint", "id": "in", "fields": {"ingress_rps": 6}}, {"kind": "endpoint", "id": "feed", "fields": {"hash_drop_window_sec": 20}}]', {by}, false)`, false},
	{"put_webhook", "a new one", `select autopost.put_webhook('w', 'new', '{"url": "https://example.org/r", "signing_ref": "key"}', {by}, false)`, false},
	{"put_webhook", "another key", `select autopost.put_webhook('w', 'crm', '{"signing_ref": "key2"}', {by}, false)`, false},
	{"remove_webhook", "", `select autopost.remove_webhook('w', 'crm', {by}, false)`, false},
	{"test_webhook", "", `select autopost.test_webhook('w', 'crm', {by})`, false},
	{"replay_webhook", "", `select autopost.replay_webhook('w', 'crm', '{"since": "2020-01-01T00:00:00Z"}', {by}, false)`, false},
	{"apply_settings", "", `select autopost.apply_settings('{"max_attempts": 6, "event_retention_days": 20}', {by}, false)`, false},
	{"create_api_key", "", `select autopost.create_api_key('w', '{"name": "key", "role": "editor", "scopes": ["posts:write"]}', md5(gen_random_uuid()::text) || md5(gen_random_uuid()::text), {by})`, false},
	{"rotate_api_key", "", `select autopost.rotate_api_key('w', {apikey}, md5(gen_random_uuid()::text) || md5(gen_random_uuid()::text), 60, {by}, false)`, false},
	{"disable_api_key", "", `select autopost.disable_api_key('w', {apikey}, {by}, false)`, false},
	{"touch_api_key", "", `select autopost.touch_api_key('w', {apikey})`, true},
	{"finish_request", "around a post", `select autopost.finish_request('w', {apikey}, 'once', repeat('a', 64), b.begun, case when b.begun ->> 'status' = 'fresh'
		then autopost.submit_post('w', 'in', 'api', '{"text": "fresh"}') end) from autopost.begin_request('w', {apikey}, 'once', repeat('a', 64)) b (begun)`, true},
	// By plain edits of rows.
	{"", "channels: more at once", `with l as materialized (` + inOrder + `)
		update autopost.channels c set max_parallel = 7 from l where c.workspace_id = 'w' and c.channel_id = l.channel_id`, false},
	{"", "channels: a pause", `with l as materialized (` + inOrder + `)
		update autopost.channels c set paused_until = autopost.now_ts() + interval '1 hour' from l where c.workspace_id = 'w' and c.channel_id = l.channel_id and c.rate_group = 'g'`, false},
	{"", "channels: another group", `update autopost.channels set rate_group = 'h' where channel_id = 'c'`, false},
	{"", "channel: another group while at work", `update autopost.channels set rate_group = 'new' where channel_id = 'a'`, false},
	{"", "workspace: paused", `update autopost.workspaces set status = 'paused'`, false},
	{"", "limit: lifted", `update autopost.platform_limits set rate_rps = null, cooldown_until = null`, false},
}

// readers are the public functions that write nothing.
var readers = []string{
	"audit_head", "begin_raw", "begin_request", "calendar", "describe_workspaces", "due_stages", "export_config", "forecast", "functions_digest", "get_channel", "get_credential", "get_data_key",
	"get_delivery", "get_endpoint", "get_media_blob", "get_media_origin", "get_message", "get_run", "get_source",
	"get_submission", "get_workspace", "get_x_post_config", "health_snapshot", "list_acts", "list_alert_targets", "list_alerts", "list_all_workspaces", "list_api_keys", "list_audit",
	"list_budgets", "list_channels", "list_chats", "list_configuration", "list_credentials", "list_daemons", "list_data_keys",
	"list_deliveries", "list_due_refreshes", "list_endpoints", "list_event_types", "list_events", "list_master_keys", "list_media_origins", "list_media_removals",
	"list_messages", "list_quotas", "list_rate_groups", "list_runs", "list_sealed_secrets", "list_settings", "list_sources", "list_submissions", "list_templates",
	"list_unknown_media", "list_unreferenced_origins", "list_webhook_deliveries", "list_workspaces", "list_x_posts", "manual_requeue_preview", "next_free_slots",
	"preview_template", "preview_x_post", "queue_metrics", "queue_snapshot", "raw_kept_since", "ready_act_workspaces", "ready_fanout_workspaces", "ready_sources",
	"ready_submission_workspaces", "ready_webhook_workspaces", "ready_work", "ready_workspaces", "report_orphans",
	"resolve_api_key", "resolve_endpoint", "resolve_signed_endpoint", "verify", "verify_audit", "why", "x_post_stats", "x_post_metrics",
}

func TestEveryWritingFunctionMeetsTheOthers(t *testing.T) {
	t.Parallel()
	public := pgtest.Column[string](pgtest.New(t), `
		select distinct p.proname::text from pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype order by 1`)
	known := slices.Clone(readers)
	for _, a := range acts {
		if a.function != "" {
			known = append(known, a.function)
		}
	}
	slices.Sort(known)
	require.Equal(t, slices.Compact(known), public, "give each new function a line in acts, or its name to readers if it writes nothing")
}

// Functions that are declared to write nothing get no transaction id.
func TestReadersWriteNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	calls := map[string]string{
		"audit_head":                  `'w'`,
		"begin_raw":                   `'w', '{"status": 500}'`,
		"begin_request":               `'w', {apikey}, 'other', repeat('a', 64)`,
		"calendar":                    `'w', now(), now() + interval '1 day', null`,
		"next_free_slots":             `'w', 'a', null, 3`,
		"describe_workspaces":         `10`,
		"due_stages":                  `4000`,
		"export_config":               `'w'`,
		"forecast":                    `'w'`,
		"functions_digest":            ``,
		"get_channel":                 `'w', 'a'`,
		"get_credential":              `'w', 'bot'`,
		"get_data_key":                `'w', 1`,
		"get_delivery":                `'w', {dead}`,
		"get_endpoint":                `'w', 'in'`,
		"get_media_blob":              `'w', '{blob}', 'telegram', 'bot', 'image'`,
		"get_media_origin":            `'w', '{blob}'`,
		"get_message":                 `'w', gen_random_uuid()`,
		"get_run":                     `'w', {run}`,
		"get_source":                  `'w', 'feed'`,
		"get_submission":              `'w', gen_random_uuid()`,
		"get_workspace":               `'w'`,
		"get_x_post_config":           `'w'`,
		"list_event_types":            `'w'`,
		"list_x_posts":                `'w', '{}', 10`,
		"preview_x_post":              `'w', 'combat', null, '{}'`,
		"x_post_metrics":              ``,
		"x_post_stats":                `'w'`,
		"health_snapshot":             `'w'`,
		"list_alert_targets":          `'w', 10`,
		"raw_kept_since":              ``,
		"list_acts":                   `'w', '{}', 10`,
		"list_alerts":                 `'w', 10`,
		"list_all_workspaces":         ``,
		"list_api_keys":               `'w', '{}', 10`,
		"list_audit":                  `'w', '{}', 10`,
		"list_budgets":                `'w', 10`,
		"list_channels":               `'w', 10`,
		"list_chats":                  `'w', 10`,
		"list_configuration":          `'w', 'channel', '{}', 10`,
		"list_credentials":            `'w', 10`,
		"list_daemons":                ``,
		"list_data_keys":              `'w', 'k2'`,
		"list_deliveries":             `'w', '{}', 10`,
		"list_due_refreshes":          `'w', 10`,
		"list_endpoints":              `'w', 10`,
		"list_events":                 `'w', '{}', 10`,
		"list_master_keys":            ``,
		"list_media_origins":          `'w', 10`,
		"list_media_removals":         `10`,
		"list_messages":               `'w', '{}', 10`,
		"list_quotas":                 `'w', 10`,
		"list_rate_groups":            `'w', 10`,
		"list_runs":                   `'w', '{}', 10`,
		"list_sealed_secrets":         `'w', 'k2', 10`,
		"list_settings":               ``,
		"list_sources":                `'w', 10`,
		"list_submissions":            `'w', '{}', 10`,
		"list_templates":              `'w', '{}', 10`,
		"list_unknown_media":          `array['{blob}']`,
		"list_unreferenced_origins":   `'w', 10`,
		"list_webhook_deliveries":     `'w', '{"webhook_id": "crm"}', 10`,
		"list_workspaces":             ``,
		"manual_requeue_preview":      `'w', array[{dead}]::uuid[]`,
		"preview_template":            `'w', 'image', 'telegram', null, '{"template": {"name": "image", "vars": {"avatar_name": "A", "prompt": "p", "short_hash": "h"}}}'`,
		"queue_metrics":               ``,
		"queue_snapshot":              `'w'`,
		"ready_act_workspaces":        `10`,
		"ready_fanout_workspaces":     `10`,
		"ready_sources":               ``,
		"ready_submission_workspaces": `10`,
		"ready_work":                  `'', 10, '[]'`,
		"ready_webhook_workspaces":    `10`,
		"ready_workspaces":            `10`,
		"report_orphans":              `'w'`,
		"resolve_api_key":             `repeat('a', 64)`,
		"resolve_endpoint":            `'webhook_push', repeat('a', 64)`,
		"resolve_signed_endpoint":     `now(), 'w', 'in'`,
		"verify":                      `'w'`,
		"verify_audit":                `'w', null`,
		"why":                         `'w', {dead}`,
	}
	for _, function := range readers {
		require.Contains(t, calls, function, "give it a call here")
		s.actors[0].Exec(`begin`)
		s.actors[0].Exec(`select * from autopost.` + function + `(` + s.words.Replace(calls[function]) + `)`)
		require.Equal(t, [][]any{{true}}, s.actors[0].Exec(`select pg_current_xact_id_if_assigned() is null`), function)
		s.actors[0].Exec(`rollback`)
	}
}
