create or replace function autopost.end_own_session(p_user_id uuid, p_session_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a session of a person by its id. Works across workspaces.
-- Returns: {"applied": true}; or {"applied": false, "reason": "unknown_session"} without such a session
--          of this person.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Writes:  sessions, admin_audit_log.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('user_id', p_user_id is not null),
		autopost.require_argument('session_id', p_session_id is not null);
	delete from autopost.sessions s where s.user_id = p_user_id and s.session_id = p_session_id;
	if not found then
		return '{"applied": false, "reason": "unknown_session"}';
	end if;
	perform autopost.audit_person('end_session', p_user_id, autopost.act_of_user(p_user_id, 'sign-out'),
		jsonb_build_object('session_id', p_session_id), '{}');
	return '{"applied": true}';
end
$$;
