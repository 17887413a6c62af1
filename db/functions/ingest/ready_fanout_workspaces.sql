create or replace function autopost.ready_fanout_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists workspaces of the role with a fan-out job that can run now.
-- Reads:   as fanout_workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('limit', p_limit > 0);
	return query select r from autopost.fanout_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
