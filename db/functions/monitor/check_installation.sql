create or replace function autopost.check_installation() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: check_alerts for the installation: daemons, duties, clocks, partitions. Its alerts
--          belong to the operator's workspace (setting operator_workspace, default the oldest).
--          Deletes reports of daemons that ended two days ago, and up to 1,000 runs without a sign
--          of life for 30 days. Only the engine may call it.
-- Returns: {"raised", "ended", "open"}.
-- Locks:   alerts.
-- Reads:   settings, workspaces, dispatch_runs.
-- Writes:  alerts, monitor_duties, dispatch_runs.
declare
	v_workspace_id text;
	v_findings jsonb[];
	v_mine text[];
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	v_workspace_id := autopost.operator_workspace();
	if v_workspace_id is null or not autopost.is_looking('', 'installation') then
		return '{"raised": 0, "ended": 0, "open": 0}';
	end if;
	v_now := autopost.now_ts();
	delete from autopost.monitor_duties d where d.reported_at < v_now - interval '2 days';
	delete from autopost.dispatch_runs r where r.run_id = any (array(
		select x.run_id from autopost.dispatch_runs x where x.seen_at < v_now - interval '30 days' limit 1000));
	v_mine := autopost.served_workspaces();
	-- while all workspaces are visible
	v_findings := array(select f.* from autopost.look_at_installation(autopost.alert_levels(), autopost.now_ts()) f);
	update autopost.alerts a set ended_at = v_now -- alerts of a previous operator's workspace
	where a.ended_at is null and a.look = 'installation' and a.workspace_id <> v_workspace_id
	and (v_mine is null or a.workspace_id = any (v_mine));
	perform autopost.enter_workspace(v_workspace_id);
	return autopost.settle_alerts(v_workspace_id, 'installation', v_findings);
end
$$;
