create or replace function autopost.list_unasked_chats(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases chats whose rights must be read from the platform, for
--          subscription_check_seconds: chats of unknown kind, chats of waiting channels (the update
--          may be lost), and chats of MAX where the bot may not post, because MAX reports no
--          change. The caller continues with record_chat_rights. Only the engine may call it.
-- Returns: [{"platform", "auth_ref", "target_id", "ask_at": for record_chat_rights}].
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Locks:   discovered_chats (skip locked).
-- Reads:   channels, channel_auth, credential_bindings.
-- Writes:  discovered_chats.
declare
	v_now timestamptz;
	v_asked jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	v_now := autopost.now_ts();
	with wanted as (
		select h.platform, h.auth_ref, h.target_id from autopost.discovered_chats h
		where h.workspace_id = p_workspace_id and h.ask_at <= v_now and h.migrated_to is null
		and (h.left_at is null and (h.may_post is null or h.platform = 'max' and not h.may_post) or exists (
			select 1 from autopost.channels c
			where c.workspace_id = p_workspace_id and c.rights_held is not null and c.platform = h.platform
			and lower(split_part(c.target_id, ':', 1)) in (h.target_id, '@' || lower(h.username))))
		and exists (
			select 1 from autopost.credential_bindings b
				where b.workspace_id = p_workspace_id and b.auth_ref = h.auth_ref and b.platform = h.platform)
		order by h.ask_at, h.platform, h.auth_ref, h.target_id
		limit p_limit
		for no key update of h skip locked
	), leased as (
		update autopost.discovered_chats h set ask_at = v_now + autopost.setting_interval('subscription_check_seconds')
		from wanted w
		where h.workspace_id = p_workspace_id and h.platform = w.platform and h.auth_ref = w.auth_ref
			and h.target_id = w.target_id
		returning h.platform, h.auth_ref, h.target_id, h.ask_at
	)
	select coalesce(jsonb_agg(to_jsonb(l) order by l.platform, l.auth_ref, l.target_id), '[]') into v_asked
		from leased l;
	return v_asked;
end
$$;
