create or replace function autopost.begin_session(p_user_id uuid, p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: begins a session of a person who has proved the password, by the SHA-256 of its token. It
--          removes up to 100 sessions that have ended. Works across workspaces.
-- Returns: {"applied": true, "session_id", "expires_at"}; or {"applied": false, "reason":
--          "unknown_user"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Reads:   users, settings.
-- Writes:  sessions, admin_audit_log.
declare
	v_session autopost.sessions;
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('user_id', p_user_id is not null), autopost.check_token_hash(p_token_hash);
	if not exists (select 1 from autopost.users u where u.user_id = p_user_id and u.enabled) then
		return '{"applied": false, "reason": "unknown_user"}';
	end if;
	delete from autopost.sessions s where s.token_hash in (
		select e.token_hash from autopost.sessions e where e.expires_at <= v_now
		order by e.expires_at limit 100 for update of e skip locked);
	insert into autopost.sessions (token_hash, session_id, user_id, created_at, last_seen_at, confirmed_at, expires_at)
	values (p_token_hash, autopost.new_id(), p_user_id, v_now, v_now, v_now,
		v_now + autopost.setting_interval('session_max_hours'))
	returning * into v_session;
	perform autopost.audit_person('begin_session', p_user_id, autopost.act_of_user(p_user_id, 'sign-in'), '{}',
		jsonb_build_object('session_id', v_session.session_id));
	return jsonb_build_object('applied', true, 'session_id', v_session.session_id, 'expires_at', v_session.expires_at);
end
$$;
