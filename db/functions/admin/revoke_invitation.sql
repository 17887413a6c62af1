create or replace function autopost.revoke_invitation(p_workspace_id text, p_invitation_id uuid, p_operator text,
	p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends an invitation; its link works no more.
-- Returns: {"applied": true}; or {"applied": false, "reason": "unknown_invitation"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Writes:  invitations, admin_audit_log.
declare
	v_act jsonb;
	v_row autopost.invitations;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('invitation_id', p_invitation_id is not null);
	delete from autopost.invitations i
	where i.workspace_id = p_workspace_id and i.invitation_id = p_invitation_id
	returning i.* into v_row;
	if v_row.invitation_id is null then
		return '{"applied": false, "reason": "unknown_invitation"}';
	end if;
	perform autopost.audit(p_workspace_id, 'revoke_invitation', 'invitation:' || p_invitation_id, v_act,
		jsonb_build_object('email', v_row.email, 'role', v_row.role), '{}');
	return '{"applied": true}';
end
$$;
