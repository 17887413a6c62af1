create or replace function autopost.list_workspaces() returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the active workspaces of the caller. Works across workspaces.
-- Reads:   workspaces.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status = 'active' and (v_mine is null or w.workspace_id = any (v_mine))
	order by w.workspace_id;
end
$$;
