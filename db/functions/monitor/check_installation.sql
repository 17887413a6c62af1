create or replace function autopost.check_installation() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- check_alerts for what concerns the whole installation: daemons, duties, clocks, partitions. Its alerts are those of the operator's workspace
-- (setting operator_workspace, else the oldest one). What daemons said that are gone for a day goes. The engine alone may.
-- Returns {"raised", "ended", "open"}. Locks: alerts. Reads: settings, workspaces, dispatch_runs. Writes: alerts, monitor_duties.
declare
	v_workspace_id text;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	v_workspace_id := autopost.operator_workspace();
	if v_workspace_id is null or not autopost.is_looking('', 'installation') then
		return '{"raised": 0, "ended": 0, "open": 0}';
	end if;
	perform autopost.enter_workspace(v_workspace_id);
	v_now := autopost.now_ts();
	delete from autopost.monitor_duties d where d.reported_at < v_now - interval '2 days';
	return autopost.settle_alerts(v_workspace_id, 'installation', array(select f.* from autopost.look_at_installation(autopost.alert_levels(), v_now) f));
end
$$;
