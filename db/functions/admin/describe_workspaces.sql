create or replace function autopost.describe_workspaces(p_limit int) returns setof autopost.workspaces
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the workspaces of the caller in any status, by id. Works across workspaces.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   workspaces.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select w.* from autopost.workspaces w
	where (v_mine is null or w.workspace_id = any (v_mine))
	order by w.workspace_id
	limit p_limit;
end
$$;
