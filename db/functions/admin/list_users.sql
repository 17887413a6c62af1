create or replace function autopost.list_users(p_filter jsonb, p_limit int) returns setof jsonb
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the people of the installation by e-mail address. All keys of p_filter are optional:
--          email, after (an address: the next page). Works across workspaces.
-- Returns: rows {"user_id", "email", "name", "language", "installation_owner", "enabled",
--          "has_password", "created_at", "roles": {workspace: role}}.
-- Raises:  AP001 for an unknown key or a limit outside 1 to 10000.
-- Reads:   users, memberships.
declare
	v_mine text[];
	v_ids uuid[];
	v_roles jsonb;
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	perform autopost.check_read(p_filter, '{email,after}', p_limit);
	v_ids := array(
		select u.user_id from autopost.users u
		where (not p_filter ? 'email' or u.email = lower(btrim(p_filter ->> 'email')))
		and (not p_filter ? 'after' or u.email > p_filter ->> 'after')
		order by u.email
		limit p_limit);
	v_roles := (
		select jsonb_object_agg(r.user_id, r.roles)
		from (
			select m.user_id, jsonb_object_agg(m.workspace_id, m.role) as roles from autopost.memberships m
			where m.user_id = any (v_ids) and (v_mine is null or m.workspace_id = any (v_mine))
			group by m.user_id) r);
	return query
	select autopost.user_shown(row(u.*)::autopost.users) || jsonb_build_object('created_at', u.created_at, 'roles',
		coalesce(v_roles -> u.user_id::text, '{}'))
	from autopost.users u
	where u.user_id = any (v_ids)
	order by u.email;
end
$$;
