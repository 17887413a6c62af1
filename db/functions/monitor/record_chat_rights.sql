create or replace function autopost.record_chat_rights(
	p_workspace_id text, p_platform text, p_auth_ref text, p_target_id text, p_ask_at timestamptz, p_right jsonb
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records a bot's rights in a chat as read from the platform: {"title", "may_post",
--          "reason"}. p_ask_at comes from list_unasked_chats; an update received meanwhile has
--          priority. Channels pause or resume as after an update. Only the engine may call it.
-- Returns: {"applied": true, "rights": "lost" | "regained" if channels changed}; or {"applied":
--          false, "reason": "unknown" | "stale"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   discovered_chats, channels (channel_id), channel_gates, audit_heads.
-- Writes:  discovered_chats, channels, channel_gates, alerts, events(channel_paused |
--          channel_enabled), admin_audit_log.
declare
	v_chat autopost.discovered_chats;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('ask_at', p_ask_at is not null);
	if coalesce(jsonb_typeof(p_right -> 'may_post') <> 'boolean', true) then
		perform autopost.raise_argument('right', 'must have may_post', 'pass {"title", "may_post", "reason"}');
	end if;
	v_chat := autopost.chat_row(p_workspace_id, p_platform, p_auth_ref, p_target_id, true);
	if v_chat.target_id is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_chat.ask_at <> p_ask_at then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_chat.title := coalesce(autopost.words_in(p_right -> 'title', 255), v_chat.title);
	v_chat.may_post := (p_right -> 'may_post')::boolean;
	v_chat.reason := autopost.words_in(p_right -> 'reason', 500);
	perform autopost.keep_chat(v_chat);
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'rights',
		autopost.follow_rights(p_workspace_id, v_chat)));
end
$$;
