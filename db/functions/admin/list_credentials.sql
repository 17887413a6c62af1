create or replace function autopost.list_credentials(p_workspace_id text, p_limit int)
	returns setof autopost.list_credentials
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the credentials of a workspace by name, with their health, without secrets.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   list_credentials (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.* from autopost.list_credentials_rows v
	where v.workspace_id = p_workspace_id
	order by v.auth_ref
	limit p_limit;
end
$$;
