create or replace function autopost.ready_act_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Workspaces in which something is to be done now to a post that was sent. Looks across workspaces. Reads: what act_workspaces reads.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query select r from autopost.act_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
