create or replace function autopost.close_ingress_floods(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends drop counters whose period is over without a further drop, and writes their events.
--          Skips locked ones.
-- Returns: {"closed"}.
-- Locks:   ingress_floods (skip locked).
-- Writes:  ingress_floods, ingest_runs, events.
declare
	v_flood autopost.ingress_floods;
	v_count int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	for v_flood in
		select f.* from autopost.ingress_floods f
		where f.workspace_id = p_workspace_id and f.opened_at <= autopost.now_ts() - autopost.drop_window()
		order by f.endpoint_id, f.action
		for no key update of f skip locked
	loop
		perform autopost.close_flood(v_flood);
		v_count := v_count + 1;
	end loop;
	return jsonb_build_object('closed', v_count);
end
$$;
