create or replace function autopost.resolve_session(p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the session with this SHA-256 of a token, if it has not ended and its person is
--          enabled. Its use is recorded once a minute. Works across workspaces.
-- Returns: {"session_id", "user_id", "name", "email", "language", "installation_owner", "confirmed":
--          the password was checked within step_up_minutes, "workspaces": [{"workspace_id", "name",
--          "role"}] by id}; null without one.
-- Reads:   sessions, users, memberships, workspaces, settings.
-- Writes:  sessions (last_seen_at).
declare
	v_session autopost.sessions;
	v_user autopost.users;
	v_now timestamptz := autopost.now_ts();
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	select s.* into v_session from autopost.sessions s
	where s.token_hash = p_token_hash and s.expires_at > v_now
		and s.last_seen_at + autopost.setting_interval('session_idle_minutes') > v_now
		and s.created_at + autopost.setting_interval('session_max_hours') > v_now;
	select u.* into v_user from autopost.users u where u.user_id = v_session.user_id and u.enabled;
	if v_user.user_id is null then
		return null;
	end if;
	if v_session.last_seen_at <= v_now - interval '1 minute' then
		update autopost.sessions s set last_seen_at = greatest(s.last_seen_at, v_now)
		where s.token_hash = p_token_hash;
	end if;
	return jsonb_build_object('session_id', v_session.session_id, 'user_id', v_user.user_id, 'name', v_user.name,
		'email', v_user.email, 'language', v_user.language, 'installation_owner', v_user.installation_owner,
		'confirmed', v_session.confirmed_at + autopost.setting_interval('step_up_minutes') > v_now,
		'workspaces', (
			select coalesce(jsonb_agg(jsonb_build_object('workspace_id', m.workspace_id, 'name',
				coalesce(nullif(w.name, ''), w.workspace_id), 'role', m.role) order by m.workspace_id), '[]')
			from autopost.memberships m
			join autopost.workspaces w on w.workspace_id = m.workspace_id
			where m.user_id = v_user.user_id and (v_mine is null or m.workspace_id = any (v_mine))));
end
$$;
