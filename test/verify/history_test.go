package verify_test

import "strings"

// lively gives workspace w a history in which nearly everything has happened, and
// leaves something of every kind waiting or in flight.
func (h *fixture) lively() {
	h.t.Helper()
	h.ordinary()
	h.uncertain()
	h.forsaken()
	h.refusals()
	h.series()
	h.threads()
	h.afterwards()
	h.decided()
	h.moved()
	h.unfinished()
}

// ordinary: sent, repeated inside and after the dedup window, retried, a source,
// a neighbour.
func (h *fixture) ordinary() {
	h.channels("plain", "retry", "dead", "feed")
	h.deliver("plain", "one")
	h.all(`select test.say('plain', 'one')`,
		`select test.channel('elsewhere', 'other')`,
		`select test.say('elsewhere', 'one', '{}', 'other')`,
		`select test.claim('other')`, `select test.start('elsewhere')`, `select test.sent('elsewhere')`)
	h.ahead("8 days")
	h.deliver("plain", "one")

	h.do(`select test.say('retry', 'slowly')`)
	h.fail("retry", "retry", limited)
	h.ahead("40 seconds")
	h.fly("retry")
	h.settle("retry", "sent", `select test.sent('retry')`)

	h.do(`select test.say('dead', 'never')`)
	for range 4 {
		h.fail("dead", "retry", transient)
		h.ahead("1 minute")
	}
	h.fail("dead", "dead", transient)
	h.do(requeue("dead"))
	h.fly("dead")
	h.settle("dead", "sent", `select test.sent('dead')`)

	h.all(`update autopost.channels set tags = '{feed}', route_filter = '{"include_any": ["feed"]}' where channel_id = 'feed'`,
		`select autopost.list_due_sources('w', 10)`,
		`select autopost.ingest_pull_chunk('w', 'feed', 'feed', '[
			{"source_ref": "0", "payload": {"text": "old"}, "skip": true, "cursor": {"n": 0}},
			{"source_ref": "1", "payload": {"text": "first", "routing": {"include_channels": ["feed"]}}, "tags": ["feed"], "cursor": {"n": 1}},
			{"source_ref": "2", "payload": {}, "cursor": {"n": 2}}]')`,
		`select autopost.set_pull_cursor('w', 'feed', '{"n": 2}')`,
		`select autopost.fail_poll('w', 'feed', '{"code": "http_500", "message": "token=abcdefgh"}')`)
	h.fly("feed")
	h.settle("feed", "sent", `select test.sent('feed')`)
}

// uncertain: nobody knows whether the platform took it, under each policy.
func (h *fixture) uncertain() {
	h.channels("reconcile", "hold", "resend")
	h.all(`update autopost.channels set on_unknown = 'hold' where channel_id = 'hold'`,
		`update autopost.channels set on_unknown = 'resend' where channel_id = 'resend'`,
		`select test.say('reconcile', 'perhaps')`)
	h.fail("reconcile", "retry", unknown)
	h.ahead("10 seconds")
	h.fail("reconcile", "failed_permanent", unknown)
	h.do(requeue("reconcile"))
	h.fail("reconcile", "retry", unknown)
	h.ahead("10 minutes")
	h.fly("reconcile")
	h.settle("reconcile", "sent", `select test.sent('reconcile')`)

	for _, verdict := range []string{"found", "absent"} {
		h.do(`select test.say('hold', $1)`, verdict)
		h.fail("hold", "retry", unknown)
		h.do(resolve("hold", verdict))
	}
	h.fly("hold")
	h.settle("hold", "sent", `select test.sent('hold')`)

	h.do(`select test.say('resend', 'and again')`)
	for range 3 {
		h.fail("resend", "retry", unknown)
		h.ahead("1 minute")
	}
	h.fly("resend")
	h.settle("resend", "sent", `select test.sent('resend')`)
}

// forsaken: claims that nobody came back from, or that came back unused.
func (h *fixture) forsaken() {
	h.channels("crash", "calm")
	h.all(`select test.say('crash', 'boom')`, `select test.claim()`)
	h.ahead("10 minutes")
	h.do(`select autopost.recover_sending_leases('w')`)
	h.ahead("1 minute")
	h.fly("crash")
	h.ahead("10 minutes")
	h.do(`select autopost.recover_sending_leases('w')`)
	h.ahead("1 minute")
	h.fly("crash")
	h.settle("crash", "sent", `select test.sent('crash')`)

	h.all(`select test.say('calm', 'not now')`, `select test.claim()`,
		`select autopost.release_claims('w', array[(test.flying('calm')).claim_token])`, `select test.claim()`,
		`update autopost.channels set paused_until = autopost.now_ts() + interval '1 hour' where channel_id = 'calm'`,
		`select test.start('calm')`,
		`update autopost.channels set paused_until = null where channel_id = 'calm'`)
	h.ahead("2 hours")
	h.fly("calm")
	h.do(`select autopost.commit_outcome('w', (test.flying('calm')).delivery_id, 'of another claim', '{"ok": true, "provider_message_id": "1"}')`)
	h.settle("calm", "sent", `select test.sent('calm')`)
}

// refusals: failures that are final, of the post, the channel and the platform.
func (h *fixture) refusals() {
	h.channels("invalid", "angry", "lost", "group")
	h.do(`select test.say('invalid', $1)`, strings.Repeat("long ", 1000))
	h.do(`select test.say('angry', 'no')`)
	h.fail("angry", "failed_permanent", forbidden)
	h.ahead("2 hours")
	h.deliver("angry", "yes")
	for _, text := range []string{"no", "still no", "never"} {
		h.do(`select test.say('lost', $1)`, text)
		h.fail("lost", "failed_permanent", forbidden)
		h.ahead("2 hours")
	}
	h.do(`select test.say('group', 'no')`)
	h.fail("group", "failed_permanent", refused)
}

// series: a push whose media are fetched first, sent in two steps and interrupted
// between them.
func (h *fixture) series() {
	h.channels("series")
	h.all(`select autopost.guard_ingress('w', 'in', 1000, 3)`,
		`select autopost.receive_push('w', 'in', jsonb_build_array(
			jsonb_build_object('source_ref', 'a', 'text', repeat('much to say. ', 100), 'media', '[
				{"type": "image", "url": "https://example.org/1.png"}, {"type": "image", "url": "https://example.org/2.png"}]'::jsonb,
				'routing', '{"include_channels": ["series"]}'::jsonb)) || '[
			{"source_ref": "b", "text": "one", "routing": {"include_channels": ["plain"]}}, {"source_ref": "b", "text": "one", "routing": {"include_channels": ["plain"]}},
			{"nothing": true}]')`,
		`select autopost.put_media_origin('w', 'sha256:' || repeat(n::text, 64), 'https://example.org/', 'image/png', 10, 'image', 1, 1) from generate_series(1, 2) n`,
		`select autopost.commit_submission('w', s.submission_id, s.claim_token, jsonb_build_object('ok', true, 'media', jsonb_build_array(
			jsonb_build_object('index', 0, 'blob_ref', 'sha256:' || repeat('1', 64)), jsonb_build_object('index', 1, 'blob_ref', 'sha256:' || repeat('2', 64)))))
		from autopost.claim_submissions('w', 'run-1', 10) s`)
	h.fly("series")
	h.do(`select autopost.record_series_progress('w', f.delivery_id, f.claim_token, '{"step": "text", "ids": ["5"], "items": []}') from test.flying('series') f`)
	h.settle("series", "retry", `select test.failed('series', $1::jsonb)`, transient)
	h.ahead("1 minute")
	h.fly("series")
	h.settle("series", "sent", `select test.sent('series')`)
}

// threads: a thread that is cut after its first part and goes on, and a post that lost its first comment.
func (h *fixture) threads() {
	h.channels("thread", "comment")
	const acknowledge = `select autopost.record_series_progress('w', f.delivery_id, f.claim_token, jsonb_build_object('step', $2::text, 'ids', jsonb_build_array($3::text))) from test.flying($1) f`
	h.do(`select test.say('thread', 'One', '{"thread": [{"text": "Two"}, {"text": "Three"}], "first_comment": "Look"}')`)
	h.fly("thread")
	h.do(acknowledge, "thread", "text", "31")
	h.settle("thread", "retry", `select test.failed('thread', $1::jsonb)`, transient)
	h.ahead("1 minute")
	h.fly("thread")
	h.do(acknowledge, "thread", "part-2.text", "32")
	h.do(acknowledge, "thread", "part-3.text", "33")
	h.settle("thread", "sent", `select test.commit('thread', '{"ok": true, "provider_message_id": "31", "raw": {"steps": {"comment": ["34"]}}}')`)

	h.do(`select test.say('comment', 'One', '{"first_comment": "Look"}')`)
	h.fly("comment")
	h.do(acknowledge, "comment", "text", "41")
	h.settle("comment", "sent", `select test.failed('comment', $1::jsonb)`, forbidden)
}

// decided: a post that went out after its approval, and one that waits for a decision.
func (h *fixture) decided() {
	h.channels("ruled")
	h.do(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated) values ('w', 'ruled', 'webhook_push', repeat('d', 64), true)`)
	h.do(`select autopost.receive_push('w', 'ruled', '[{"text": "Approved", "routing": {"include_channels": ["ruled"]}}]')`)
	h.do(`select autopost.decide_submission('w', s.submission_id, 'approve', '{}', 'user:olga', 'fine') from autopost.submissions s where s.status = 'pending'`)
	h.fly("ruled")
	h.settle("ruled", "sent", `select test.sent('ruled')`)
	h.all(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'mods', 'telegram', 'env:MODS')`,
		`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values ('w', 'mods', 'bot_webhook', repeat('e', 64), '{"auth_ref": "mods"}')`,
		`select autopost.put_moderation_chat('w', 'mods', '{"auth_ref": "mods", "target_id": "-1009"}', 'olga', 'a test', false)`)
	h.asked("Rejected")
	h.press("reject")
	h.asked("Waits")
}

// asked: a post waits, and the moderators' chat has a message about it.
func (h *fixture) asked(text string) {
	h.do(`select autopost.receive_push('w', 'ruled', '[{"text": "` + text + `", "routing": {"include_channels": ["ruled"]}}]')`)
	for range 2 { // the message of an earlier post is changed first
		h.all(`select autopost.finish_moderation('w', c ->> 'kind', (c ->> 'id')::uuid, c ->> 'token', '{"ok": true, "provider_message_id": "9"}')
			from autopost.claim_moderation('w', 10) c`,
			`update autopost.moderation_chats set next_at = '-infinity'`)
	}
}

// press: a person presses a button of the newest message in the moderators' chat.
func (h *fixture) press(decision string) {
	h.do(`select autopost.receive_update('w', 'mods', jsonb_build_object('update_id', floor(random() * 1e12)::bigint, 'callback_query', jsonb_build_object(
		'id', 'cb', 'data', 'm:' || case '` + decision + `' when 'approve' then m.approve_nonce else m.reject_nonce end, 'from', '{"id": 5001, "first_name": "Olga"}'::jsonb,
		'message', '{"message_id": 9, "chat": {"id": -1009, "type": "channel"}}'::jsonb)))
		from (select * from autopost.moderation_messages order by created_at desc, message_id desc limit 1) m`)
}

// afterwards: what was done to posts that were sent, at once, at the second try, over
// claims that nobody came back from, and not at all.
func (h *fixture) afterwards() {
	h.channels("acts", "gone")
	h.deliver("acts", "one")
	h.do(`select test.ask('acts', 'edit')`)
	h.act("acts")
	h.ends("acts", "retry", notActed)
	h.ahead("1 minute")
	h.act("acts")
	h.ends("acts", "done", acted)
	h.all(`select test.ask('acts', 'pin')`, `select * from autopost.claim_acts('w', 'run-1', 100)`)
	for range 2 {
		h.ahead("6 minutes")
		h.act("acts")
	}
	h.ends("acts", "done", acted)
	h.do(`select test.ask('acts', 'unpin')`)
	h.act("acts")
	h.ends("acts", "failed", mayNot)

	h.deliver("gone", "one")
	h.all(`select test.ask('gone', 'delete')`, `select test.ask('gone', 'pin')`)
	h.act("gone")
	h.ends("gone", "done", acted)
}

// unfinished leaves one of each: scheduled with media and to be removed, waiting for a retry,
// claimed, called, being fetched; a running post change and one that waits for it.
func (h *fixture) unfinished() {
	h.channels("later", "waiting", "claimed", "flying")
	h.all(`select test.say('later', 'tomorrow', jsonb_build_object('scheduled_for', autopost.now_ts() + interval '1 day', 'remove_at', autopost.now_ts() + interval '2 days',
			'media', jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))))`,
		`select test.say('waiting', 'not yet')`)
	h.fail("waiting", "retry", patience)
	h.deliver("acts", "two")
	h.do(`select test.ask('acts', 'edit')`)
	h.act("acts")
	h.all(`select test.ask('acts', 'pin')`, `select test.say('flying', 'up there')`)
	h.fly("flying")
	h.all(`select test.say('claimed', 'about to')`, `select test.claim()`,
		`select autopost.receive_push('w', 'in', '[{"media": [{"type": "image", "url": "https://example.org/3.png"}]}]')`)
}

// moved: to an earlier time, after a failed call, to a free slot; replaced in part.
func (h *fixture) moved() {
	h.channels("moved", "slotted", "replaced")
	h.do(`select test.say('moved', 'sooner', jsonb_build_object('scheduled_for', to_char(autopost.now_ts() + interval '2 days', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))`)
	h.do(`select autopost.reschedule('w', array[(test.newest('moved')).delivery_id], autopost.now_ts(), 'ann', 'the fair is today', false)`)
	h.fly("moved")
	h.settle("moved", "sent", `select test.sent('moved')`)
	h.do(`select test.say('moved', 'not today')`)
	h.fail("moved", "retry", transient)
	h.do(`select autopost.shift_deliveries('w', array[(test.newest('moved')).delivery_id], 86400, 'ann', 'tomorrow', false)`)
	h.do(`select autopost.skip_deliveries('w', array[(test.newest('moved')).delivery_id], 'ann', 'not at all', false)`)
	h.do(`select test.say('slotted', 'first', '{"slot": "next_free"}')`)
	h.do(`select test.say('slotted', 'second', '{"slot": "next_free"}')`)
	h.deliver("replaced", "as it was")
	h.do(`select autopost.edit_post('w', (test.newest('replaced')).message_id, '{"text": "as it is"}', null, 'ann', 'read it again', false)`)
	h.do(`select test.say('replaced', 'draft', '{"slot": "next_free"}')`)
	h.do(`select autopost.replace_post('w', (test.newest('replaced')).message_id, '{"text": "final"}', 'ann', 'read it again', false)`)
}
