create or replace function autopost.end_sessions(p_user_id uuid, p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: signs a person out everywhere. Works across workspaces.
-- Returns: {"applied": true, "ended": sessions}; or {"applied": false, "reason": "unknown_user"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Writes:  sessions, admin_audit_log.
declare
	v_act jsonb := autopost.manual_act(p_operator, p_reason, false);
	v_ended int;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('user_id', p_user_id is not null);
	if not exists (select 1 from autopost.users u where u.user_id = p_user_id) then
		return '{"applied": false, "reason": "unknown_user"}';
	end if;
	delete from autopost.sessions s where s.user_id = p_user_id;
	get diagnostics v_ended = row_count;
	perform autopost.audit_person('end_sessions', p_user_id, v_act, '{}', jsonb_build_object('ended', v_ended));
	return jsonb_build_object('applied', true, 'ended', v_ended);
end
$$;
