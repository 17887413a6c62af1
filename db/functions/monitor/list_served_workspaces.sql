create or replace function autopost.list_served_workspaces(p_all boolean) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the workspaces that a daemon at this node serves: all of the installation or, at a node of a
--          Citus cluster, those of served_workspaces. p_all: in any status, since retention also applies to
--          paused and disabled ones; else the active ones. Only the engine may call it.
-- Reads:   workspaces.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('all', p_all is not null);
	v_mine := autopost.served_workspaces();
	return query
	select w.workspace_id from autopost.workspaces w
	where (p_all or w.status = 'active') and (v_mine is null or w.workspace_id = any (v_mine))
	order by w.workspace_id;
end
$$;
