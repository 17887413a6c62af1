create or replace function autopost.list_workspaces() returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The active workspaces that the caller may speak for. Looks across workspaces.
-- Reads: workspaces.
begin
	perform autopost.enter_all_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status = 'active' and autopost.may_speak_for(w.workspace_id)
	order by w.workspace_id;
end
$$;
