package verify_test

// bot adds a bot of MAX with the example rules.
func (h *fixture) bot() {
	h.t.Helper()
	h.all(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'shop', 'max', 'env:SHOP')`,
		`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values ('w', 'shop', 'bot_webhook', repeat('b', 64), '{"auth_ref": "shop"}')`,
		`select autopost.install_bot_examples('w', 'test', 'test')`)
}

// says lets a customer say a text with this id.
func (h *fixture) says(text, id string) {
	h.t.Helper()
	h.do(`select autopost.bot_receive('w', 'shop', jsonb_build_object('update_type', 'message_created', 'timestamp', 1795000000000, 'message', jsonb_build_object(
		'recipient', '{"chat_id": 1, "chat_type": "dialog"}'::jsonb, 'body', jsonb_build_object('mid', $2::text, 'text', $1::text), 'sender', '{"user_id": 7}'::jsonb)))`, text, id)
	h.ahead("1 second")
}

const (
	claimReplies = `select count(*) from autopost.bot_claim_replies('w', 'run-1', 10)`
	startReply   = `select autopost.bot_start_reply('w', o.reply_id, o.claim_token) from autopost.bot_outbox o where o.status = 'sending'`
	replySent    = `select autopost.bot_commit_reply('w', o.reply_id, o.claim_token, '{"ok": true, "provider_message_id": "mid.1"}') from autopost.bot_outbox o where o.status = 'sending'`
	replyUnknown = `select autopost.bot_commit_reply('w', o.reply_id, o.claim_token, '{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}')
		from autopost.bot_outbox o where o.status = 'sending'`
)

// inBot are bugs of the shop bot.
var inBot = []planted{
	{invariant: "I32", bug: "a message counts as processed without an answer", plant: func(h *fixture) {
		h.bot()
		h.says("возврат", "m1")
		h.raw(`update autopost.bot_inbox set status = 'processed', processed_at = autopost.now_ts(), message = null`)
		h.raw(`delete from autopost.bot_logs`)
	}},
	{invariant: "I32", bug: "an answer is not put into the outbox", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_answer", "if v_done ->> 'text' is not null then", "if false then")
		h.says("возврат", "m1")
	}},
	{invariant: "I32", bug: "a repeat is answered again", plant: func(h *fixture) {
		h.bot()
		h.says("возврат", "m1")
		h.raw(`update autopost.bot_inbox set status = 'received', processed_at = null, message = '{"text": "возврат"}'`)
		h.do(`select autopost.bot_recover('w')`)
	}},
	{invariant: "I32", bug: "messages of a dialog are decided at the same time", plant: func(h *fixture) {
		h.bot()
		h.says("возврат", "m1")
		h.raw(`update autopost.bot_state set state = 'default', context = '{}', expires_at = null`)
		h.says("возврат", "m2")
	}},
	{invariant: "I32", bug: "a dialog gets two replies at once", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_claim_of", "and e.reply_id < o.reply_id)", "and false)")
		h.says("доставка", "m1")
		h.says("возврат", "m2")
		h.do(claimReplies)
	}},
	{invariant: "I32", bug: "a reply overtakes the one before", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_claim_of", "and e.reply_id < o.reply_id)", "and e.reply_id > o.reply_id)")
		h.says("доставка", "m1")
		h.says("возврат", "m2")
		for range 2 {
			h.all(claimReplies, startReply, replySent)
			h.ahead("2 seconds")
		}
	}},
	{invariant: "I32", bug: "an unknown outcome is not counted", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_end_call", "unknown_outcomes = o.unknown_outcomes + v_unknown", "unknown_outcomes = o.unknown_outcomes")
		h.says("доставка", "m1")
		h.all(claimReplies, startReply, replyUnknown)
	}},
	{invariant: "I32", bug: "the end of a reply leaves no event", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_end_call", "where p_more -> 'log' is distinct from 'false'", "where false")
		h.says("доставка", "m1")
		h.all(claimReplies, startReply, replySent)
	}},
	{invariant: "I32", bug: "a sent reply is sent again", plant: func(h *fixture) {
		h.bot()
		h.says("доставка", "m1")
		h.all(claimReplies, startReply, replySent)
		h.raw(`update autopost.bot_outbox set status = 'pending', sent_at = null, finished_at = null`)
	}},
	{invariant: "I18", bug: "no stage sends the replies", plant: func(h *fixture) {
		h.bot()
		h.says("доставка", "m1")
		h.forgotten("30 minutes")
	}},
	{invariant: "I18", bug: "no stage processes what was received", plant: func(h *fixture) {
		h.bot()
		h.breaks("bot_answer", "if v_done ->> 'text' is not null then", "perform 1 / 0; if v_done ->> 'text' is not null then")
		h.says("доставка", "m1")
		h.forgotten("5 minutes")
	}},
}
