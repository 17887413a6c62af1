create or replace function autopost.ready_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Active workspaces for which a claim could give something now, from the one on whose turn it is: the turn is moved by end_dispatch.
-- Looks across workspaces. Reads: dispatch_cursor and what armed_workspaces reads.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	select r from autopost.ready_ring(
		coalesce((select c.served from autopost.dispatch_cursor c where c.scope = autopost.dispatch_scope()), ''), p_limit) r;
end
$$;
