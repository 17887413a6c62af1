create or replace function autopost.ready_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists active workspaces with claimable deliveries, starting with the one that has the
--          turn. end_dispatch moves the turn.
-- Reads:   dispatch_cursor; as armed_workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('limit', p_limit > 0);
	return query
	select r from autopost.ready_ring(
		coalesce((select c.served from autopost.dispatch_cursor c where c.scope = autopost.dispatch_scope()), ''),
			p_limit) r;
end
$$;
