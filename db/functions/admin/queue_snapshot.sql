create or replace function autopost.queue_snapshot(p_workspace_id text) returns setof autopost.queue_snapshot
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: counts deliveries that wait, are in flight or need a person, by status, with the
--          earliest due time. A status without rows is omitted.
-- Reads:   queue_snapshot (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	return query
	select v.* from autopost.queue_snapshot_rows v
	where v.workspace_id = p_workspace_id
	order by v.status;
end
$$;
