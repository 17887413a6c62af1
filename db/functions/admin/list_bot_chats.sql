create or replace function autopost.list_bot_chats(p_workspace_id text, p_filter jsonb, p_limit int)
	returns table (provider text, auth_ref text, chat_id text, state text, expires_at timestamptz, waiting bigint,
		failing bigint, unsent bigint, updated_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the dialogs of the bots, the latest first: their state, the messages that wait for their
--          turn (waiting) or were given up after five tries (failing), and open replies (unsent).
--          p_filter: {"provider", "auth_ref", "state", "before": an instant of updated_at, "before_chat":
--          the list continues behind this chat of that instant}.
-- Raises:  AP001 for an unknown filter or a limit outside 1 to 10000.
-- Reads:   bot_state, bot_inbox, bot_outbox.
declare
	v_before timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{provider,auth_ref,state,before,before_chat}', p_limit);
	v_before := autopost.instant_in(p_filter, 'before');
	return query
	select s.provider, s.auth_ref, s.chat_id, s.state, s.expires_at,
		(select count(*) from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.provider = s.provider and i.auth_ref = s.auth_ref
		and i.chat_id = s.chat_id and i.status = 'received' and i.tries < 5),
		(select count(*) from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.provider = s.provider and i.auth_ref = s.auth_ref
		and i.chat_id = s.chat_id and i.status = 'received' and i.tries = 5),
		(select count(*) from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = s.provider and o.auth_ref = s.auth_ref
		and o.chat_id = s.chat_id and o.status in ('pending', 'sending', 'retry')), s.updated_at
	from autopost.bot_state s
	where s.workspace_id = p_workspace_id
	and (not p_filter ? 'provider' or s.provider = p_filter ->> 'provider')
	and (not p_filter ? 'auth_ref' or s.auth_ref = p_filter ->> 'auth_ref')
	and (not p_filter ? 'state' or s.state = p_filter ->> 'state')
	and (v_before is null or s.updated_at < v_before
		or s.updated_at = v_before and s.chat_id > p_filter ->> 'before_chat')
	order by s.updated_at desc, s.chat_id, s.provider, s.auth_ref
	limit p_limit;
end
$$;
