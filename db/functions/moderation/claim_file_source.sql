create or replace function autopost.claim_file_source(p_workspace_id text, p_source_id text, p_run_id text) returns
	jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases an enabled source of kind filebus to a run, due or not, or renews the lease of that run. Another run
--          must have ended, or its lease. Only the engine may call it.
-- Returns: {"applied": true, "config_json", "endpoint_id": null without an enabled endpoint}, or {"applied": false,
--          "reason"}: leased, disabled.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors.
-- Reads:   pull_sources, workspace_endpoints, dispatch_runs.
-- Writes:  pull_cursors.
declare
	v_source autopost.pull_sources;
	v_cursor autopost.pull_cursors;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_source := autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('run_id', p_run_id <> '');
	if not v_source.enabled then
		return '{"applied": false, "reason": "disabled"}';
	end if;
	insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at, updated_at)
	values (p_workspace_id, p_source_id, autopost.now_ts(), autopost.now_ts())
	on conflict (workspace_id, source_id) do nothing;
	select c.* into v_cursor from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id
	for no key update of c;
	if v_cursor.leased_by <> p_run_id and v_cursor.leased_until > autopost.now_ts()
		and v_cursor.leased_by <> all (autopost.silent_runs(autopost.now_ts())) then
		return '{"applied": false, "reason": "leased"}';
	end if;
	v_until := autopost.now_ts() + autopost.setting_interval('pull_lease_seconds');
	update autopost.pull_cursors c
	set next_poll_at = v_until, leased_by = p_run_id, leased_until = v_until
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	return jsonb_build_object('applied', true, 'config_json', v_source.config_json, 'endpoint_id', (
		select e.endpoint_id from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.source_id = p_source_id and e.kind = 'pull_source' and e.enabled));
end
$$;
