create or replace function autopost.end_session(p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends the session with this SHA-256 of a token. Works across workspaces.
-- Returns: {"applied": true}; {"applied": false} without such a session.
-- Locks:   audit_heads.
-- Writes:  sessions, admin_audit_log.
declare
	v_session autopost.sessions;
begin
	perform autopost.enter_all_workspaces();
	delete from autopost.sessions s where s.token_hash = p_token_hash returning s.* into v_session;
	perform autopost.audit_person('end_session', v_session.user_id, autopost.act_of_user(v_session.user_id, 'sign-out'),
		jsonb_build_object('session_id', v_session.session_id), '{}') where v_session.user_id is not null;
	return jsonb_build_object('applied', v_session.user_id is not null);
end
$$;
