create or replace function autopost.describe_workspaces(p_limit int) returns setof autopost.workspaces
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The workspaces that the caller may speak for, whatever their status, by their id. Raises AP001 for a limit out of 1 to 10000.
-- Looks across workspaces. Reads: workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select w.* from autopost.workspaces w
	where autopost.may_speak_for(w.workspace_id)
	order by w.workspace_id
	limit p_limit;
end
$$;
