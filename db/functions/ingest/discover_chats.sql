create or replace function autopost.discover_chats(p_workspace_id text, p_auth_ref text, p_updates jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records the chats that waiting updates of a bot name, for a bot without an endpoint. Nothing
--          else is done with the updates, and a repeat changes nothing. Channels pause or resume as by
--          receive_update. Only the engine may call it.
-- Returns: {"chats": known chats of the bot}.
-- Raises:  AP001 for a wrong argument, or a credential that is not a bot.
-- Locks:   discovered_chats, channels (channel_id), channel_gates, audit_heads.
-- Reads:   credential_bindings.
-- Writes:  discovered_chats, channels, channel_gates, alerts, events (channel_paused, channel_enabled),
--          admin_audit_log.
declare
	v_platform text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('updates', jsonb_typeof(p_updates) = 'array');
	select b.platform into v_platform from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref and b.platform in ('telegram', 'max');
	if v_platform is null then
		perform autopost.raise_argument('auth_ref', format('%s is not a bot', coalesce(p_auth_ref, 'null')),
			'use a credential of telegram or max');
	end if;
	perform autopost.note_chat(p_workspace_id, v_platform, p_auth_ref, f.fact)
	from (
		select c.value as fact
		from jsonb_array_elements(p_updates) with ordinality u (body, n)
		cross join lateral jsonb_array_elements((case v_platform when 'telegram' then autopost.telegram_update(u.body)
			else autopost.max_update(u.body) end) -> 'chats') c
		where jsonb_typeof(u.body) = 'object'
		order by c.value ->> 'target_id', u.n) f;
	return jsonb_build_object('chats', (select count(*) from autopost.discovered_chats h
		where h.workspace_id = p_workspace_id and h.platform = v_platform and h.auth_ref = p_auth_ref
		and h.left_at is null));
end
$$;
