create or replace function autopost.remove_moderation_chat(p_workspace_id text, p_chat_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes a moderators' chat. Its messages keep their buttons; a press on one is refused. To
--          remove the buttons first, disable the chat with put_moderation_chat.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run",
--          "reason": "unknown_chat"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, moderation_chats, audit_heads.
-- Writes:  moderation_chats, moderation_messages, alerts, admin_audit_log.
declare
	v_act jsonb;
	v_before jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('chat_id', p_chat_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(c), autopost.moderation_chat_rules())
		from autopost.moderation_chats c where c.workspace_id = p_workspace_id and c.chat_id = p_chat_id);
	if v_before is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_chat');
	end if;
	v_before := autopost.fields_that_differ(v_before, autopost.default_fields(autopost.moderation_chat_rules()));
	if not p_dry_run then
		delete from autopost.moderation_chats c where c.workspace_id = p_workspace_id and c.chat_id = p_chat_id;
		perform autopost.end_alert(p_workspace_id, 'moderation_chat_failing', 'moderation_chat:' || p_chat_id);
		perform autopost.audit(p_workspace_id, 'remove_moderation_chat', 'moderation_chat:' || p_chat_id, v_act,
			v_before,
			'{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', '{}'::jsonb);
end
$$;
