create or replace function autopost.bot_forget(p_workspace_id text, p_provider text, p_auth_ref text, p_chat_id text,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: erases what is stored about a chat: its messages, replies, state and log, copies of them for
--          the operator, and the contents of its updates. The ids of updates stay, so that a repeat is
--          recognised. The audit log keeps that it was erased. p_auth_ref: null for all bots of the provider.
-- Returns: {"applied": true, "dry_run", "erased": {"bot_inbox", "bot_outbox", "bot_state", "bot_logs", "bot_updates"}};
--          or {"applied": false, "dry_run", "reason": "unknown_chat"}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   bot_updates, bot_state, bot_inbox, bot_outbox, audit_heads.
-- Writes:  bot_updates, bot_state, bot_inbox, bot_outbox, bot_logs, admin_audit_log.
declare
	v_act jsonb;
	v_erased jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('provider', p_provider <> ''), autopost.require_argument('chat_id',
		p_chat_id <> '');
	if not p_dry_run then
		update autopost.bot_updates u set payload = null
		where u.workspace_id = p_workspace_id and u.auth_ref = coalesce(p_auth_ref, u.auth_ref)
		and u.chat_id = p_chat_id and u.payload is not null and exists (
			select 1 from autopost.credential_bindings b
			where b.workspace_id = p_workspace_id and b.auth_ref = u.auth_ref and b.platform = p_provider);
		perform 1 from autopost.bot_state s
		where s.workspace_id = p_workspace_id and s.provider = p_provider
		and s.auth_ref = coalesce(p_auth_ref, s.auth_ref) and s.chat_id = p_chat_id
		order by s.auth_ref for update of s;
	end if;
	v_erased := autopost.bot_chat_rows(p_workspace_id, p_provider, p_auth_ref, p_chat_id);
	if v_erased = '{}' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_chat');
	elsif not p_dry_run then
		delete from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.provider = p_provider
		and i.auth_ref = coalesce(p_auth_ref, i.auth_ref) and i.chat_id = p_chat_id;
		delete from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = p_provider
		and o.auth_ref = coalesce(p_auth_ref, o.auth_ref) and p_chat_id in (o.chat_id, o.about_chat_id);
		delete from autopost.bot_logs l
		where l.workspace_id = p_workspace_id and l.provider = p_provider
		and l.auth_ref = coalesce(p_auth_ref, l.auth_ref) and l.chat_id = p_chat_id;
		delete from autopost.bot_state s
		where s.workspace_id = p_workspace_id and s.provider = p_provider
		and s.auth_ref = coalesce(p_auth_ref, s.auth_ref) and s.chat_id = p_chat_id;
		perform autopost.audit(p_workspace_id, 'bot_forget', format('bot_chat:%s/%s', p_provider, p_chat_id), v_act,
			v_erased, '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'erased', v_erased);
end
$$;

create or replace function autopost.bot_chat_rows(p_workspace_id text, p_provider text, p_auth_ref text,
	p_chat_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: how many rows each table has about a chat, {table: rows}, without empty ones.
-- Reads:   bot_inbox, bot_outbox, bot_state, bot_logs.
begin
	return (
		select coalesce(jsonb_object_agg(n.name, n.rows) filter (where n.rows > 0), '{}')
		from (
			select 'bot_inbox' as name, count(*) as rows from autopost.bot_inbox i
			where i.workspace_id = p_workspace_id and i.provider = p_provider
			and i.auth_ref = coalesce(p_auth_ref, i.auth_ref) and i.chat_id = p_chat_id
			union all
			select 'bot_outbox', count(*) from autopost.bot_outbox o
			where o.workspace_id = p_workspace_id and o.provider = p_provider
			and o.auth_ref = coalesce(p_auth_ref, o.auth_ref) and p_chat_id in (o.chat_id, o.about_chat_id)
			union all
			select 'bot_state', count(*) from autopost.bot_state s
			where s.workspace_id = p_workspace_id and s.provider = p_provider
			and s.auth_ref = coalesce(p_auth_ref, s.auth_ref) and s.chat_id = p_chat_id
			union all
			select 'bot_logs', count(*) from autopost.bot_logs l
			where l.workspace_id = p_workspace_id and l.provider = p_provider
			and l.auth_ref = coalesce(p_auth_ref, l.auth_ref) and l.chat_id = p_chat_id) n);
end
$$;
