create or replace function autopost.list_all_workspaces() returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The workspaces that the caller may speak for, whatever their status: what is past its time goes from those that rest, too.
-- Looks across workspaces. Reads: workspaces.
begin
	perform autopost.enter_all_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where autopost.may_speak_for(w.workspace_id)
	order by w.workspace_id;
end
$$;
