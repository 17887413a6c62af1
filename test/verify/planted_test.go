package verify_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// planted is a bug: what it does to a lively workspace, and what verify must say.
type planted struct {
	invariant string
	bug       string
	plant     func(h *fixture)
	// also are the invariants that break with it, and why they cannot but do so.
	also    []string
	because string
}

// edit plants a bug by one direct edit of rows.
func edit(sql string) func(h *fixture) { return func(h *fixture) { h.raw(sql) } }

// sentOn names the delivery that was sent last on a channel.
func sentOn(channel string) string {
	return `(select d.delivery_id from autopost.deliveries d where d.channel_id = '` + channel + `' and d.status = 'sent' order by d.delivery_id desc limit 1)`
}

// inStates are bugs that show in the rows of the queue alone.
var inStates = []planted{
	{invariant: "I3", bug: "the policy's attempts are not counted", plant: func(h *fixture) {
		h.breaks("settle_transient", "p_delivery.attempt >= autopost.max_attempts(v_policy, p_delivery)", "false")
		h.do(`select test.say('retry', 'for ever')`)
		for range 6 {
			h.fail("retry", "retry", transient)
			h.ahead("1 minute")
		}
		h.do(`select autopost.recover_sending_leases('w')`)
	}},
	{invariant: "I4", bug: "the unique index is gone and a delivery is copied", plant: func(h *fixture) {
		h.do(`drop index autopost.deliveries_inflight`)
		h.raw(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, scheduled_for, status, trace_id, ingest_run_id)
			select d.workspace_id, gen_random_uuid(), d.message_id, d.channel_id, d.hash_version, d.content_hash, d.scheduled_for, 'queued', d.trace_id, d.ingest_run_id
			from autopost.deliveries d where d.channel_id = 'later'`)
	}, also: []string{"I17"}, because: "the enqueue event counts one"},
	{invariant: "I6", bug: "sent without the platform's id", plant: func(h *fixture) {
		h.dropChecks("provider_message_id")
		h.raw(`update autopost.deliveries set provider_message_id = null where delivery_id = ` + sentOn("plain"))
	}},
	{invariant: "I6", bug: "sent_at stays with a failure", plant: func(h *fixture) {
		h.dropChecks("sent_at")
		h.raw(`update autopost.deliveries set sent_at = created_at where channel_id = 'group'`)
	}},
	{invariant: "I7", bug: "sending without a lease", plant: func(h *fixture) {
		h.dropChecks("sending_lease_until")
		h.raw(`update autopost.deliveries set sending_lease_until = null where channel_id = 'flying'`)
	}},
	{invariant: "I7", bug: "a token stays with a waiting delivery", plant: func(h *fixture) {
		h.dropChecks("claim_token")
		h.raw(`update autopost.deliveries set claim_token = 'kept' where channel_id = 'waiting'`)
	}},
	{invariant: "I8", bug: "a token is issued again", plant: edit(`update autopost.deliveries
		set claim_token = (select d.settled ->> 'token' from autopost.deliveries d where d.delivery_id = ` + sentOn("plain") + `) where channel_id = 'flying'`)},
	{invariant: "I10", bug: "the counter in flight drifts", plant: edit(`update autopost.channel_gates set inflight = inflight + 1 where channel_id = 'flying'`)},
	{invariant: "I10", bug: "leases of a channel are not found", plant: edit(`delete from autopost.channels_in_flight where channel_id = 'flying'`)},
	{invariant: "I10", bug: "a claim forgets max_parallel", plant: func(h *fixture) {
		h.breaksEach("claim_from_group", "least(v_turns, u.room)", "v_turns")
		h.all(`select test.say('plain', 'side')`, `select test.say('plain', 'by side')`, `select test.claim()`)
	}},
	{invariant: "I46", bug: "what has no slot is paid for", plant: func(h *fixture) {
		h.breaks("claim_from_group", "perform autopost.charge_posts(p_workspace_id, o_ids);", "")
		h.breaks("claim_from_group", "if v_limited then", "perform autopost.charge_posts(p_workspace_id, o_ids); if v_limited then")
		h.do(`update autopost.channels set rate_rps = 1, max_parallel = 10 where channel_id = 'plain'`)
		h.do(`insert into autopost.budgets (workspace_id, auth_ref, month_micros) select 'w', auth_ref, 1000000 from autopost.channels where channel_id = 'plain'`)
		h.all(`select test.say('plain', 'one')`, `select test.say('plain', 'two')`, `select test.say('plain', 'three')`, `select test.claim()`)
	}},
	{invariant: "I18", bug: "an enqueue does not open the gate", plant: func(h *fixture) {
		h.breaks("arm_gates", "least(g.ready_at, p_due)", "g.ready_at")
		h.do(`select test.say('plain', 'unheard')`)
		h.ahead("3 minutes")
	}},
	{invariant: "I18", bug: "a credential that is set does not open the gates", plant: func(h *fixture) {
		h.breaks("end_credential_wait", "order by 1) u", "order by 1) u where false")
		h.do(`select test.say('plain', 'no secret')`)
		h.do(`select test.claim()`)
		h.do(`update autopost.channels set credential_missing_at = autopost.now_ts() - interval '1 hour' where channel_id = 'plain'`)
		h.do(`select autopost.commit_outcome('w', d.delivery_id, d.claim_token, '{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "credential_missing", "known": true}}')
			from autopost.deliveries d where d.channel_id = 'plain' and d.status = 'sending'`)
		h.do(`select test.claim()`)
		h.do(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'plain', 'telegram', 'env:PLAIN')`)
		h.ahead("3 minutes")
	}},
	{invariant: "I18", bug: "nobody recovers leases", plant: func(h *fixture) { h.ahead("10 minutes") }},
	{invariant: "I18", bug: "no stage sees fan-out jobs", plant: func(h *fixture) {
		h.beginFanout()
		h.forgotten("5 minutes")
	}},
	{invariant: "I18", bug: "no stage sees due sources", plant: func(h *fixture) {
		h.do(`insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'unseen', 'rss')`)
		h.do(`insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at) values ('w', 'unseen', autopost.now_ts())`)
		h.forgotten("30 minutes")
	}},
	{invariant: "I18", bug: "no stage sees calls of result webhooks", plant: func(h *fixture) {
		h.do(`insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, enabled_at, next_send_at) values ('w', 'shop', 'https://e.x/', 'key', autopost.now_ts(), autopost.now_ts())`)
		h.do(`insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, due_at, created_at)
			values ('w', 'shop', gen_random_uuid(), 'delivery.sent', autopost.now_ts(), '{}', autopost.now_ts(), autopost.now_ts())`)
		h.forgotten("5 minutes")
	}},
	{invariant: "I29", bug: "a clock that jumped took a slot", plant: edit(`update autopost.channels set next_allowed_at = autopost.now_ts() + interval '1 day' where channel_id = 'plain'`)},
	{invariant: "I29", bug: "a claim does not look at quotas", plant: func(h *fixture) {
		h.breaks("quota_left", "p_quota.max_sends -", "1000 -")
		h.do(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'plain', 3600, 2)`)
		h.overQuota()
	}},
	{invariant: "I29", bug: "a group's quota is not looked at", plant: func(h *fixture) {
		h.breaks("within_quota", "room := least(room,", "room := greatest(room,")
		h.breaks("hold_group", "if found then", "if false then")
		h.do(`insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends, counts) values ('w', 'telegram', 'plain', 3600, 2, 'calls')`)
		h.overQuota()
	}},
	{invariant: "I29", bug: "a post that was sent is given back to its quota", plant: func(h *fixture) {
		h.breaks("settle_quota", "p_status = 'sent' then u.posts", "p_status = 'sent' then 0")
		h.do(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'plain', 3600, 2)`)
		h.overQuota()
	}},
	{invariant: "I29", bug: "a claim that is over keeps its quota", plant: func(h *fixture) {
		h.breaks("finish_attempt", "if p_delivery.quota_held then", "if false then")
		h.do(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'plain', 3600, 2)`)
		h.deliver("plain", "once")
	}},
	{invariant: "I29", bug: "the same of a group", plant: edit(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, next_allowed_at)
		values ('w', 'telegram', 'plain', 10, autopost.now_ts() + interval '1 day')`)},
}

// inHistory are bugs that show in the events.
var inHistory = []planted{
	{invariant: "I1", bug: "a status changes behind the events' back", plant: edit(`update autopost.deliveries set status = 'dead' where channel_id = 'group'`)},
	{invariant: "I1", bug: "a final delivery moves on", plant: func(h *fixture) {
		h.do(`drop trigger guard_transition on autopost.deliveries`)
		h.do(`update autopost.deliveries set status = 'queued', sent_at = null, due_at = default where delivery_id = ` + sentOn("retry"))
	}, also: []string{"I18", "I24"}, because: "nobody opened its gate, and its end is recorded but not kept"},
	{invariant: "I2", bug: "a call begins twice under one claim", plant: func(h *fixture) {
		h.breaksEach("start_together", "d.call_begun_at is null", "true")
		h.all(`select test.start('flying')`)
	}, also: []string{"I1"}, because: "a call cannot follow the call of the same claim"},
	{invariant: "I2", bug: "a claim starts a call without its record", plant: func(h *fixture) {
		h.breaks("claim_and_start", "where x.starts", "where false")
		h.do(`select test.say('plain', 'at once')`)
		h.do(`select autopost.claim_and_start('w', 'run-1', 100, '[]', (select array_agg(distinct c.auth_ref) from autopost.channels c where c.workspace_id = 'w'))`)
	}},
	{invariant: "I2", bug: "a call begins without its mark", plant: edit(`update autopost.deliveries set call_begun_at = null where channel_id = 'flying'`)},
	{invariant: "I24", bug: "the enqueue event is lost", plant: edit(`delete from autopost.events where action = 'enqueue' and message_id =
		(select d.message_id from autopost.deliveries d where d.channel_id = 'crash')`)},
	{invariant: "I24", bug: "an attempt is granted and nobody says so", plant: edit(`update autopost.deliveries set granted_attempts = granted_attempts + 1 where channel_id = 'plain'`)},
	{invariant: "I24", bug: "a commit forgets its event", plant: func(h *fixture) {
		h.breaks("commit_together", "= p_workspace_id\n\t), freed", "= p_workspace_id and false\n\t), freed")
		h.deliver("plain", "quietly")
	}, also: []string{"I1"}, because: "the events end at the call"},
	{invariant: "I25", bug: "an event has the next attempt", plant: edit(`update autopost.events e set attempt = attempt + 1
		where e.action = 'unknown_outcome' and e.channel_id = 'reconcile' and e.attempt = 1`)},
	{invariant: "I27", bug: "a sent does not end the streak", plant: func(h *fixture) {
		h.breaks("is_marked", "p_error_streak <> 0", "false")
		h.do(`select test.say('plain', 'no')`)
		h.fail("plain", "failed_permanent", forbidden)
		h.ahead("2 hours")
		h.do(`select autopost.recover_sending_leases('w')`)
		h.deliver("plain", "yes")
	}},
	{invariant: "I27", bug: "a failure of the post counts for its channel", plant: edit(`update autopost.channels set error_streak = 1 where channel_id = 'invalid'`)},
	{invariant: "I27", bug: "a failure of the channel does not count", plant: func(h *fixture) {
		h.breaks("settle_permanent", "p_error ->> 'scope' = 'channel'", "false")
		h.do(`select test.say('plain', 'no')`)
		h.fail("plain", "failed_permanent", forbidden)
	}},
}

// inTheLog are bugs that show in the records of operator actions.
var inTheLog = []planted{
	{invariant: "I35", bug: "a requeue is not recorded", plant: func(h *fixture) {
		h.breaks("manual_requeue", "perform autopost.audit(", "perform jsonb_build_array(")
		h.do(requeue("group"))
	}},
	{invariant: "I35", bug: "the log loses a row", plant: edit(`delete from autopost.admin_audit_log where action = 'resolve_unknown'`)},
}

// inCalls are bugs that show in when and how often the platform was called.
var inCalls = []planted{
	{invariant: "I11", bug: "a slot counts for half", plant: func(h *fixture) {
		h.breaks("slot_micros", "ceil(1000000 / p_rate_rps)", "ceil(500000 / p_rate_rps)")
		h.do(`update autopost.channels set rate_rps = 1, max_parallel = 2 where channel_id = 'plain'`)
		h.ahead("5 seconds")
		h.do(`select test.say('plain', 'side'), test.say('plain', 'by side')`)
		h.fly("plain")
		h.settle("plain", "sent", `select test.sent('plain')`)
		h.do(`select test.start('plain')`)
	}},
	{invariant: "I13", bug: "a call begins inside the wait of its channel", plant: func(h *fixture) {
		h.breaks("start_obstacle", "greatest(p_channel.cooldown_until, p_limit.cooldown_until) > p_now", "false")
		h.twoFly("plain")
		h.settle("plain", "retry", `select test.failed('plain', $1::jsonb)`, limited)
		h.ahead("5 seconds")
		h.do(`select test.start('plain')`)
	}},
	{invariant: "I13", bug: "a call begins inside the wait of its group", plant: func(h *fixture) {
		h.breaks("group_ready_at", "p_limit.cooldown_until, ", "")
		h.breaks("claim_from_group", "v_limit.cooldown_until, ", "")
		h.breaks("start_obstacle", "greatest(p_channel.cooldown_until, p_limit.cooldown_until)", "p_channel.cooldown_until")
		h.channels("neighbour")
		h.do(`update autopost.channels set rate_group = 'plain' where channel_id = 'neighbour'`)
		h.do(`select test.say('plain', 'too many')`)
		h.fail("plain", "retry", flooded)
		h.ahead("5 seconds")
		h.deliver("neighbour", "at once")
	}},
	{invariant: "I14", bug: "jitter shortens the platform's wait", plant: func(h *fixture) {
		h.breaks("retry_delay", "p_retry_after_ms * (1 + p_luck * p_policy.jitter)", "p_retry_after_ms * 0.8")
		h.do(`select test.say('plain', 'hurry')`)
		h.fail("plain", "retry", limited)
	}},
	{invariant: "I14", bug: "no backoff", plant: func(h *fixture) {
		h.breaks("retry_delay", "p_policy.base_ms * p_policy.factor", "1 + 0 * p_policy.factor")
		h.do(`select test.say('plain', 'at once')`)
		h.fail("plain", "retry", transient)
	}},
	{invariant: "I15", bug: "a pause is not looked at", plant: func(h *fixture) {
		h.breaks("start_obstacle", "p_channel.paused_until > p_now", "false")
		h.twoFly("plain")
		h.settle("plain", "failed_permanent", `select test.failed('plain', $1::jsonb)`, forbidden)
		h.do(`select test.start('plain')`)
	}},
	{invariant: "I15", bug: "what is claimed goes on while a breaker is open", plant: func(h *fixture) {
		h.breaks("call_obstacle", "v_limit.probe_id is distinct from p_delivery_id", "false")
		h.channels("one", "two", "three", "four")
		h.do(`update autopost.channels set rate_group = 'down' where channel_id in ('one', 'two', 'three', 'four')`)
		h.do(`update autopost.platform_limits set cooldown_until = null`)
		h.all(`select test.say(c, 'is anybody there') from unnest('{one,two,three,four}'::text[]) c`, `select test.claim()`)
		for _, channel := range []string{"one", "two", "three"} {
			h.do(`select test.start($1)`, channel)
			h.settle(channel, "retry", `select test.failed($1, $2::jsonb)`, channel, `{"category": "TRANSIENT", "scope": "platform", "code": "net_connect"}`)
		}
		h.ahead("2 seconds")
		h.do(`select test.start('four')`)
	}},
	{invariant: "I15", bug: "a disabled channel is served", plant: func(h *fixture) {
		h.breaks("start_obstacle", "not p_channel.enabled", "false")
		h.do(`update autopost.channels set error_streak = 2 where channel_id = 'plain'`)
		h.twoFly("plain")
		h.settle("plain", "failed_permanent", `select test.failed('plain', $1::jsonb)`, forbidden)
		h.all(`update autopost.channels set paused_until = null where channel_id = 'plain'`, `select test.start('plain')`)
	}, also: []string{"I27"}, because: "the streak before was made up"},
	{invariant: "I16", bug: "a claim takes what is not due", plant: func(h *fixture) {
		h.breaksEach("claim_from_group", "and d.due_at <= v_now", "")
		h.breaks("claim_from_group", "and d.next_retry_at <= v_now", "")
		h.do(`update autopost.channel_gates set ready_at = autopost.now_ts() where channel_id = 'waiting'`)
		h.do(`update autopost.channels set cooldown_until = null where channel_id = 'waiting'`)
		h.fly("waiting")
	}},
	{invariant: "I16", bug: "a scheduled post goes early", plant: func(h *fixture) {
		h.breaksEach("claim_from_group", "and d.due_at <= v_now", "")
		h.breaks("claim_from_group", "and d.next_retry_at <= v_now", "")
		h.do(`update autopost.channel_gates set ready_at = autopost.now_ts() where channel_id = 'later'`)
		h.fly("later")
	}},
	{invariant: "I16", bug: "a window that closed after the claim is not looked at", plant: func(h *fixture) {
		h.breaks("start_obstacle", "greatest(p_slot, p_now)) > greatest(p_slot, p_now)", "p_now) < p_now")
		h.windowEnding("plain", "2 minutes")
		h.all(`select test.say('plain', 'too late')`, `select test.claim()`)
		h.ahead("3 minutes")
		h.do(`select test.start('plain')`)
	}},
	{invariant: "I16", bug: "a closed channel is claimed and called", plant: func(h *fixture) {
		h.breaks("opens_at", "p_window_mode <> 'windowed'", "p_slot is null")
		h.windowEnding("plain", "-2 minutes")
		h.deliver("plain", "out of hours")
		h.breaks("opens_at", "if p_slot is null", "if p_window_mode <> 'windowed'")
	}},
	{invariant: "I18", bug: "a move to an earlier time does not open the gate", plant: func(h *fixture) {
		h.breaks("move_deliveries", "(select min(d.due_at) from", "(select max(d.due_at) + interval '1 year' from")
		h.do(`select autopost.reschedule('w', array[(test.newest('later')).delivery_id], autopost.now_ts(), 'ann', 'sooner', false)`)
		h.ahead("3 minutes")
	}},
	{invariant: "I49", bug: "a move does not change the row", plant: func(h *fixture) {
		h.breaks("set_schedule", "set scheduled_for = p_at", "set scheduled_for = d.scheduled_for")
		h.do(`select autopost.reschedule('w', array[(test.newest('later')).delivery_id], autopost.now_ts(), 'ann', 'sooner', false)`)
	}},
	{invariant: "I49", bug: "a replaced post has no successor", plant: func(h *fixture) {
		h.breaks("replace_queued", "v_message_id), p_meta);", "gen_random_uuid()), p_meta);")
		h.do(`select autopost.replace_post('w', (test.newest('later')).message_id, '{"text": "later words"}', 'ann', 'read it again', false)`)
	}},
	{invariant: "I20", bug: "the allowance of blind resends is not looked at", plant: func(h *fixture) {
		h.breaks("settle_unknown", "v_delivery.unknown_outcomes > p_delivery.unknown_allowance", "false")
		h.do(`select test.say('plain', 'perhaps')`)
		for range 2 {
			h.fail("plain", "retry", unknown)
			h.ahead("1 minute")
		}
		h.fly("plain")
	}},
	{invariant: "I20", bug: "a held delivery is sent without a person", plant: func(h *fixture) {
		h.breaks("settle_unknown", "case v_on_unknown when 'hold' then", "case v_on_unknown when 'no such' then")
		h.do(`select test.say('hold', 'perhaps')`)
		h.fail("hold", "retry", unknown)
		h.ahead("1 minute")
		h.fly("hold")
	}},
	{invariant: "I20", bug: "recovery takes a call that began for one that did not", plant: func(h *fixture) {
		h.breaks("call_started_at", "then p_delivery.call_begun_at", "then null::timestamptz")
		h.ahead("10 minutes")
		h.do(`select autopost.recover_sending_leases('w')`)
	}},
	{invariant: "I20", bug: "an unknown outcome is not counted", plant: edit(`update autopost.deliveries set unknown_outcomes = 0 where channel_id = 'reconcile'`)},
	{invariant: "I21", bug: "a post is called before its event", plant: edit(`delete from autopost.events where action = 'send_attempt' and delivery_id = ` + sentOn("plain"))},
	{invariant: "I21", bug: "a post is called for after its end", plant: edit(`insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result)
		select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, d.finished_at + interval '1 second', 'send_attempt', d.attempt, 'ok'
		from autopost.deliveries d where d.delivery_id = ` + sentOn("plain")),
		also: []string{"I1", "I2"}, because: "it is a second call of its attempt, and no call may follow the end"},
	{invariant: "I22", bug: "a series is sent before its steps", plant: edit(`update autopost.deliveries
		set render_meta = render_meta #- '{series_progress,steps,text}' where channel_id = 'series'`)},
	{invariant: "I22", bug: "an item is sent twice", plant: edit(`update autopost.deliveries
		set render_meta = jsonb_set(render_meta, '{series_progress,sent_items}', '[0, 1, 1]') where channel_id = 'series'`)},
	{invariant: "I22", bug: "a thread is sent without a part", plant: func(h *fixture) {
		h.breaks("steps_missing", "s.ordinality < jsonb_array_length(p_render_meta -> 'steps')", "s.ordinality < 2")
		h.do(`select test.say('thread', 'Another', '{"thread": [{"text": "Two"}, {"text": "Three"}]}')`)
		h.fly("thread")
		h.settle("thread", "sent", `select test.commit('thread', '{"ok": true, "provider_message_id": "51", "raw": {"steps": {"text": ["51"], "part-3.text": ["53"]}}}')`)
	}},
	{invariant: "I22", bug: "a part of a waiting thread is acknowledged before the one ahead of it", plant: func(h *fixture) {
		h.do(`select test.say('thread', 'Another', '{"thread": [{"text": "Two"}, {"text": "Three"}]}')`)
		h.fly("thread")
		h.do(`select autopost.record_series_progress('w', f.delivery_id, f.claim_token, '{"step": "part-3.text", "ids": ["53"]}') from test.flying('thread') f`)
	}},
	{invariant: "I22", bug: "two parts of a thread are one message", plant: edit(`update autopost.deliveries
		set render_meta = jsonb_set(render_meta, '{series_progress,provider_message_ids}', '["31", "32", "32", "34"]') where channel_id = 'thread'`)},
	{invariant: "I22", bug: "a first comment is lost without an event", plant: func(h *fixture) {
		h.breaks("settle_comment", "perform autopost.emit_event(", "perform jsonb_build_array(")
		h.do(`select test.say('comment', 'Another', '{"first_comment": "Look"}')`)
		h.fly("comment")
		h.do(`select autopost.record_series_progress('w', f.delivery_id, f.claim_token, '{"step": "text", "ids": ["61"]}') from test.flying('comment') f`)
		h.settle("comment", "sent", `select test.failed('comment', $1::jsonb)`, forbidden)
	}},
	{invariant: "I22", bug: "a post fails with its first comment", plant: edit(`update autopost.deliveries
		set status = 'failed_permanent', sent_at = null where channel_id = 'comment'`),
		also: []string{"I1"}, because: "its events end with sent"},
}

// inActs are bugs that show in what was done to posts after they were sent.
var inActs = []planted{
	{invariant: "I41", bug: "a running act has no owner", plant: edit(`update autopost.post_acts set claimed_by = null where status = 'sending'`)},
	{invariant: "I41", bug: "a running act is never retried", plant: edit(`update autopost.post_acts set next_at = 'infinity' where status = 'sending'`)},
	{invariant: "I41", bug: "a slot stays with an act that is done", plant: edit(`update autopost.post_acts set send_at = started_at where status = 'done' and kind = 'edit'`)},
	{invariant: "I42", bug: "a commit forgets the event of its act", plant: func(h *fixture) {
		h.breaks("end_act", "perform autopost.emit_act(p_act, case p_status when 'done'", "perform jsonb_build_array(p_act, case p_status when 'done'")
		h.ends("acts", "done", acted)
	}},
	{invariant: "I42", bug: "an act is made again and nobody hears why", plant: func(h *fixture) {
		h.breaks("take_act", "elsif v_act.status = 'sending' then", "elsif false then")
		h.do(`update autopost.post_acts set next_at = autopost.now_ts() where status = 'sending'`) // its lease ends
		h.act("acts")
	}},
	{invariant: "I42", bug: "an act that was asked for is lost", plant: edit(`delete from autopost.post_acts where status = 'queued' and operator = 'ann'`)},
	{invariant: "I43", bug: "an act is asked of what was not sent", plant: func(h *fixture) {
		h.breaks("act_refusals", "when d.status <> 'sent' then 'not_sent'", "when d.status = 'no such' then 'not_sent'")
		h.do(`select test.ask('waiting', 'pin')`)
	}},
	{invariant: "I43", bug: "a removal does not wait for its post", plant: func(h *fixture) {
		h.breaks("act_waits_until", "if p_delivery.status <> 'sent' then", "if false then")
		h.do(`update autopost.post_acts set next_at = autopost.now_ts() where channel_id = 'later'`)
		h.act("later")
	}},
	{invariant: "I44", bug: "a removal does not wait for a running act", plant: func(h *fixture) {
		h.breaks("act_waits_until", "o.status = 'sending' and o.next_at > p_now", "false")
		h.do(`select test.ask('acts', 'delete')`)
		h.act("acts")
	}},
	{invariant: "I44", bug: "what was removed is changed", plant: func(h *fixture) {
		h.breaks("was_deleted", "a.status = 'done'", "a.status = 'no such'")
		h.do(`select test.ask('gone', 'edit')`)
		h.act("gone")
	}},
	{invariant: "I44", bug: "an act does not wait for an earlier one", plant: func(h *fixture) {
		h.breaks("act_waits_until", "(o.due_at, o.act_id) < (p_act.due_at, p_act.act_id)", "false")
		h.deliver("plain", "to be changed")
		h.do(`select test.ask('plain', 'edit')`)
		h.do(`update autopost.post_acts set next_at = autopost.now_ts() + interval '1 hour' where channel_id = 'plain'`)
		h.ahead("3 minutes")
		h.do(`select test.ask('plain', 'pin')`)
		h.act("plain")
	}},
	{invariant: "I45", bug: "an act is tried for ever", plant: func(h *fixture) {
		h.breaks("commit_act", "v_act.attempt >= autopost.act_attempts(p_workspace_id, v_channel.platform, v_error ->> 'code')", "false")
		h.do(`select test.ask('plain', 'pin')`)
		for range 13 { // more than the most patient policy has
			h.act("plain")
			h.ends("plain", "retry", notActed)
			h.do(`update autopost.post_acts set next_at = autopost.now_ts() where channel_id = 'plain'`)
		}
	}},
	{invariant: "I36", bug: "the error of an act is not redacted", plant: edit(`update autopost.post_acts
		set last_error = '{"message": "bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"}' where status = 'failed'`)},
}

// inIngress are bugs that show between the input and the rows kept of it.
var inIngress = []planted{
	{invariant: "I48", bug: "an occurrence is enqueued again", plant: func(h *fixture) {
		h.repeats()
		h.do(`update autopost.occurrences set status = 'expected', message_id = null where status = 'enqueued'`)
		h.breaks("run_occurrence", "p_occurrence.occurrence_id)\n		||", "'same')\n		||")
		h.do(`update autopost.recurrences set next_at = autopost.now_ts()`)
		h.do(`insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
			select 'w', autopost.new_id(), o.recurrence_id, o.local_at + interval '1 minute', o.at + interval '30 seconds', o.updated_at from autopost.occurrences o`)
		h.do(`select autopost.run_recurrences('w')`)
	}},
	{invariant: "I48", bug: "an occurrence is called enqueued without a post", plant: func(h *fixture) {
		h.repeats()
		h.do(`update autopost.occurrences set message_id = gen_random_uuid() where status = 'enqueued'`)
	}},
	{invariant: "I18", bug: "a due recurrence is not run", plant: func(h *fixture) {
		h.repeats()
		h.do(`update autopost.recurrences set next_at = autopost.now_ts() - interval '1 hour', updated_at = autopost.now_ts() - interval '1 hour'`)
		h.do(`select autopost.touch_run('a daemon')`)
	}},
	{invariant: "I5", bug: "what was sent is not looked at", plant: func(h *fixture) {
		h.breaks("fan_out_to", "d.status = 'sent'", "d.status = 'no such'")
		h.do(`select test.say('plain', 'one')`)
	}},
	{invariant: "I17", bug: "a channel is passed over and counted", plant: func(h *fixture) {
		h.breaks("fan_out_to", "order by u.n;", "and u.channel_id <> 'plain';")
		h.do(`select test.say('plain', 'swallowed')`)
	}},
	{invariant: "I17", bug: "a channel is dropped and called a repeat", plant: func(h *fixture) {
		h.breaks("fan_out_to", "if p_fresh then", "if not p_fresh then")
		h.breaks("fan_out_to", "u.ttl) offset 0)", "u.ttl) offset 0) and u.channel_id <> 'plain'")
		h.do(`select test.say('plain', 'swallowed')`)
	}},
	{invariant: "I17", bug: "a fan-out miscounts while it goes on", plant: func(h *fixture) {
		h.beginFanout()
		h.do(`update autopost.fanout_jobs set enqueued = enqueued + 1`)
	}},
	{invariant: "I17", bug: "a fan-out is lost on its way", plant: func(h *fixture) {
		h.beginFanout()
		h.do(`delete from autopost.fanout_jobs`)
	}, also: []string{"I24"}, because: "its event will never be written"},
	{invariant: "I17", bug: "a delivery is lost after it was answered", plant: edit(`delete from autopost.deliveries where channel_id = 'later'`),
		also: []string{"I43"}, because: "its removal waits for nothing"},
	{invariant: "I17", bug: "a submission is lost after it was answered", plant: edit(`delete from autopost.submissions where status = 'fetching'`),
		also: []string{"I31"}, because: "its receipt answers for it"},
	{invariant: "I26", bug: "a table's row security is not forced", plant: func(h *fixture) {
		h.do(`alter table autopost.channels no force row level security`)
	}},
	{invariant: "I26", bug: "an event is written under the neighbour's workspace", plant: edit(`update autopost.events set workspace_id = 'w'
		where workspace_id = 'other' and action = 'send_attempt'`)},
	{invariant: "I26", bug: "a table belongs to whom row security does not bind", plant: func(h *fixture) {
		h.do(`alter table autopost.events_default owner to current_user`)
	}},
	{invariant: "I31", bug: "a receipt without what it stands for", plant: edit(`update autopost.ingress_receipts set answer = null where source_ref = 'a'`)},
	{invariant: "I31", bug: "the id of a signed request is kept and its posts are not", plant: func(h *fixture) {
		h.do(`select autopost.receive_signed_push('w', 'in', 'msg-1', '[{"text": "signed"}]')`)
		h.do(`update autopost.signed_requests set results = null`)
	}},
	{invariant: "I17", bug: "drops are reported with another number than counted", plant: func(h *fixture) {
		h.breaks("close_flood", "'requests', v_stats -> 'requests'", "'requests', 1")
		h.do(`select autopost.apply_settings('{"ingress_drops_per_second": 0}', 'o', 'r', false)`)
		h.do(`select autopost.guard_ingress('w', 'in', 1000000000, 1) from generate_series(1, 3)`)
		h.ahead("61 seconds")
		h.do(`select autopost.close_ingress_floods('w')`)
	}},
	{invariant: "I31", bug: "a source's item is marked as seen and not taken", plant: edit(`insert into autopost.pull_receipts (workspace_id, source_id, source_ref, run_id, received_at, expires_at)
		select r.workspace_id, r.source_id, '3', r.run_id, r.received_at, r.expires_at from autopost.pull_receipts r limit 1`)},
	{invariant: "I36", bug: "errors are not redacted", plant: func(h *fixture) {
		h.do(`create or replace function autopost.redact(p_text text) returns text language sql immutable as $$ select p_text $$`)
		h.do(`select test.say('plain', 'secretly')`)
		h.fail("plain", "retry", transient)
	}},
	{invariant: "I34", bug: "a post goes out before its approval", plant: edit(`update autopost.submissions set status = 'pending', answer = null, decision = null,
		decided_by = null, decided_at = null where decision = 'approve'`)},
	{invariant: "I34", bug: "an approval of another plan counts", plant: edit(`update autopost.approvals set digest = repeat('0', 64) where subject like 'submission:%'`)},
	{invariant: "I34", bug: "the plan changes after its approval", plant: edit(`update autopost.submissions set plan = jsonb_set(plan, '{renderings,0,text}', '"other"')
		where decision = 'approve'`)},
	{invariant: "I34", bug: "a button of an old message decides about the new text", plant: func(h *fixture) {
		h.breaks("press_result", "v_submission.digest is distinct from p_message.digest", "false")
		h.do(`select autopost.edit_submission('w', s.submission_id, '{"text": "Waits no longer"}', 'user:ivan', 'nicer', false) from autopost.submissions s where s.status = 'pending'`)
		h.press("reject")
	}},
	{invariant: "I34", bug: "a decision in a chat leaves no trace of its press", plant: edit(`delete from autopost.moderation_presses`)},
	{invariant: "I34", bug: "another text than the approved one goes out", plant: edit(`update autopost.deliveries set rendered_text = 'other' where channel_id = 'ruled'`)},
	{invariant: "I38", bug: "the sweep takes what is still to be sent", plant: edit(`update autopost.media_origin set deleted_at = now() where blob_ref like '%1'`)},
	{invariant: "I39", bug: "a purge forgets the dedup window", plant: edit(`delete from autopost.deliveries where delivery_id = ` + sentOn("plain")),
		also: []string{"I17", "I26"}, because: "the enqueue event counts it, and its events lead nowhere"},
	{invariant: "I40", bug: "hashing changed and its version did not", plant: func(h *fixture) {
		h.breaks("content_hash", "blob_ref,file_id", "file_id")
	}},
	{invariant: "I40", bug: "a payload is edited in place", plant: edit(`update autopost.messages set payload = payload || '{"text": "other words"}'
		where message_id = (select d.message_id from autopost.deliveries d where d.channel_id = 'retry')`)},
}

// Each bug is planted in a transaction of its own, which is rolled back.
func TestPlantedBugsAreCaught(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(inStates, inHistory, inTheLog, inCalls, inActs, inIngress, inFiles, inBot, inKeeping)
	caught := make([]bool, len(cases))
	sound := open(t)
	sound.lively()
	for i, c := range cases {
		t.Run(c.invariant+" "+c.bug, func(t *testing.T) {
			h := &fixture{t: t, db: sound.db, session: sound.session}
			h.do(`begin`)
			defer sound.session.Exec(`rollback`)
			c.plant(h)
			_, broken := h.verify()
			named := slices.Sorted(maps.Keys(broken))
			require.Equal(t, slices.Sorted(slices.Values(append([]string{c.invariant}, c.also...))), named, "%v", broken)
			require.Equal(t, len(c.also) > 0, c.because != "", "what else breaks is argued")
			caught[i] = true
		})
	}
	sound.clean()

	proven := map[string]bool{}
	n := 0
	for i, c := range cases {
		if caught[i] {
			proven[c.invariant] = true
			n++
		}
	}
	t.Logf("planted %d, caught %d", len(cases), n)
	all, _ := sound.verify()
	for _, f := range all {
		require.True(t, proven[f.Invariant], "no bug was planted that %s (%s) would catch", f.Invariant, f.Title)
	}
}
