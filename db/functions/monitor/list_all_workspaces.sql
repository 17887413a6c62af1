create or replace function autopost.list_all_workspaces() returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the workspaces of the caller in any status, since retention also applies to paused
--          and disabled ones. Works across workspaces.
-- Reads:   workspaces.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where (v_mine is null or w.workspace_id = any (v_mine))
	order by w.workspace_id;
end
$$;
