create or replace function autopost.list_workspaces() returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the active workspaces of the caller. Works across workspaces.
-- Reads:   workspaces.
begin
	perform autopost.enter_all_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status = 'active' and autopost.may_access(w.workspace_id)
	order by w.workspace_id;
end
$$;
