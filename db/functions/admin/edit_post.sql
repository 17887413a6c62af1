create or replace function autopost.edit_post(p_workspace_id text, p_message_id uuid, p_changes jsonb, p_at timestamptz,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: changes fields of a post, whether it was sent or waits: request_acts at p_at (null: now) for
--          what was sent, replace_post for what waits. p_changes: new values; null removes a field.
--          For sent posts only text, parse_mode, link, buttons, disable_preview, template and variants
--          change.
-- Returns: as replace_post.
-- Raises:  AP001 for a wrong argument, and for an edit of a sent post that no platform supports.
-- Locks:   as replace_post.
-- Reads:   messages, deliveries, submissions.
-- Writes:  as replace_post.
declare
	v_meta jsonb;
	v_message autopost.messages;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('message_id', p_message_id is not null),
		autopost.require_argument('changes', p_changes is not null);
	if not exists (select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id
			and d.message_id = p_message_id and d.phase in ('active', 'claimed', 'retry'))
		and not exists (select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
			and s.message_id = p_message_id and s.status = 'pending') then
		return autopost.request_acts(p_workspace_id, 'edit', p_message_id, null, p_changes, p_at, p_operator, p_reason,
			p_dry_run);
	elsif jsonb_typeof(p_changes) <> 'object' or p_changes = '{}' then
		perform autopost.raise_argument('changes', 'must have a field',
			'pass what the post is to say instead: {"text": "…"}');
	end if;
	select m.* into v_message from autopost.messages m
	where m.workspace_id = p_workspace_id and m.message_id = p_message_id;
	return autopost.replace_or_plan(p_workspace_id, p_message_id, jsonb_build_object('tags', v_message.tags)
		|| autopost.edited_payload(v_message.payload, p_changes), p_changes, p_at, v_meta, p_dry_run);
end
$$;
