create or replace function autopost.next_wake_ms() returns bigint
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Milliseconds until some active workspace has something to claim: 0 = now; null = nothing waits. Looks across workspaces.
-- Reads: what armed_workspaces reads.
declare
	v_at timestamptz;
begin
	perform autopost.enter_all_workspaces();
	select min(r.ready_at) into v_at from autopost.armed_workspaces() r;
	return case when isfinite(v_at) then greatest(0, ceil(extract(epoch from v_at - autopost.now_ts()) * 1000))::bigint end;
end
$$;
