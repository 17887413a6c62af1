create or replace function autopost.ready_workspaces_after(p_after text, p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- ready_workspaces for who keeps the turn itself, as a daemon does: p_after is the last workspace that it served, '' at first.
-- Looks across workspaces. Reads: what armed_workspaces reads.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('after', p_after is not null);
	perform autopost.require('limit', p_limit > 0);
	return query select r from autopost.ready_ring(p_after, p_limit) r;
end
$$;
