create or replace function autopost.bot_transcript(p_workspace_id text, p_provider text, p_auth_ref text,
	p_chat_id text, p_limit int)
	returns table (id uuid, ts timestamptz, kind text, message_text text, matched_rule_id text, rule_version int,
		state_before text, state_after text, response_preview text, meta jsonb, reply_id uuid, reply_status text,
		sent_at timestamptz, unknown_outcomes int, last_error jsonb)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns the newest lines of a conversation, oldest first, with personal data masked, and the
--          delivery of each answer. p_auth_ref: null if the chat has one bot only.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   bot_logs, bot_outbox.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('provider', p_provider <> ''), autopost.require_argument('chat_id',
		p_chat_id <> '');
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select l.id, l.ts, l.kind, l.message_text, l.matched_rule_id, l.rule_version, l.state_before, l.state_after,
		l.response_preview, l.meta, o.reply_id, o.status, o.sent_at, o.unknown_outcomes, o.last_error
	from (
		select x.* from autopost.bot_logs x
		where x.workspace_id = p_workspace_id and x.provider = p_provider
		and x.auth_ref = coalesce(p_auth_ref, x.auth_ref) and x.chat_id = p_chat_id
		order by x.ts desc, x.id desc
		limit p_limit) l
	left join lateral (
		select y.reply_id, y.status, y.sent_at, y.unknown_outcomes, y.last_error from autopost.bot_outbox y
		where y.workspace_id = p_workspace_id and y.reply_id = (l.meta ->> 'idempotency_key')::uuid limit 1) o on true
	order by l.ts, l.id;
end
$$;
