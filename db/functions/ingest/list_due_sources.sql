create or replace function autopost.list_due_sources(p_workspace_id text, p_limit int) returns setof autopost.due_source
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists enabled sources with a due poll and leases them to the caller for
--          pull_lease_seconds. endpoint_id is null if the source has no enabled endpoint.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors (skip locked).
-- Writes:  pull_cursors.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('limit', p_limit > 0);
	return query select s.* from autopost.lease_sources(p_workspace_id, null, null, p_limit) s;
end
$$;
