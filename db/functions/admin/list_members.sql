create or replace function autopost.list_members(p_workspace_id text, p_filter jsonb, p_limit int) returns setof jsonb
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the people of a workspace, newest account first. All keys of p_filter are optional:
--          user_id, before_id (older than this id: the next page).
-- Returns: rows {"user_id", "email", "name", "role", "enabled", "installation_owner", "since"}.
-- Raises:  AP001 for an unknown key, a malformed id, or a limit outside 1 to 10000.
-- Reads:   memberships, users.
declare
	v_user_id uuid := autopost.uuid_in(p_filter, 'user_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{user_id,before_id}', p_limit);
	return query
	select jsonb_build_object('user_id', u.user_id, 'email', u.email, 'name', u.name, 'role', m.role, 'enabled',
		u.enabled, 'installation_owner', u.installation_owner, 'since', m.created_at)
	from autopost.memberships m
	join autopost.users u on u.user_id = m.user_id
	where m.workspace_id = p_workspace_id
	and (v_user_id is null or m.user_id = v_user_id)
	and (v_before_id is null or m.user_id < v_before_id)
	order by m.user_id desc
	limit p_limit;
end
$$;
