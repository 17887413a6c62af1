create or replace function autopost.remove_draft(p_workspace_id text, p_draft_id uuid, p_author text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes a draft of this person.
-- Returns: {"applied": true, "draft_id"}, or {"applied": false, "reason"}: unknown_draft, or
--          submitted (it is a post already).
-- Raises:  AP001 for a wrong argument.
-- Locks:   drafts, audit_heads.
-- Writes:  drafts, admin_audit_log.
declare
	v_draft autopost.drafts;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_draft := autopost.own_draft(p_workspace_id, p_draft_id, p_author);
	if v_draft.draft_id is null then
		return '{"applied": false, "reason": "unknown_draft"}';
	elsif v_draft.submitted_at is not null then
		return '{"applied": false, "reason": "submitted"}';
	end if;
	delete from autopost.drafts d where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id;
	perform autopost.audit(p_workspace_id, 'remove_draft', 'draft:' || p_draft_id, autopost.manual_act(p_author,
		'its author removed it', false), '{}', '{}');
	return jsonb_build_object('applied', true, 'draft_id', p_draft_id);
end
$$;
