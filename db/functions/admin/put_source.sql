create or replace function autopost.put_source(
	p_workspace_id text, p_source_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Makes a source, or changes what p_fields names of it: {"kind", "config_json", "enabled", "endpoint_id"}. config_json is merged key by key,
-- null takes a key away; a change of kind replaces it. A new source gets an endpoint of kind pull_source, with the id of the source unless
-- endpoint_id says otherwise. What is changed or enabled is polled at once. To take a source away, disable it.
-- Returns {"applied": true, "dry_run", "created", "before", "after"}, a dry run too, which changes nothing, or {"applied": false, "dry_run",
-- "reason": unchanged | invalid, "errors": [{"field", "reason", "remedy"}]}. Raises AP001 for a wrong argument and an unknown field.
-- Locks, in this order: workspaces, pull_sources, pull_cursors, audit_heads. Writes: pull_sources, workspace_endpoints, pull_cursors,
-- admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.pull_sources;
	v_new autopost.pull_sources;
	v_endpoint_id text;
	v_before jsonb;
	v_after jsonb;
	v_faults jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require('source_id', p_source_id <> '');
	perform autopost.check_source_fields(p_fields);
	if not p_dry_run then
		perform 1 from autopost.workspaces w where w.workspace_id = p_workspace_id for no key update of w;
	end if;
	select s.* into v_old from autopost.pull_sources s where s.workspace_id = p_workspace_id and s.source_id = p_source_id;
	v_new := autopost.changed_source(p_workspace_id, p_source_id, v_old, p_fields);
	v_endpoint_id := autopost.source_endpoint(p_workspace_id, p_source_id, p_fields ->> 'endpoint_id');
	v_before := autopost.source_state(p_workspace_id, p_source_id);
	v_after := jsonb_strip_nulls(jsonb_build_object('kind', v_new.kind, 'enabled', v_new.enabled, 'stopped', v_new.stopped,
		'config_json', autopost.masked_config(v_new.config_json), 'endpoint_id', v_endpoint_id));
	if v_before = v_after and v_old.config_json = v_new.config_json then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	end if;
	-- A source that nobody could repair any more could not be disabled either.
	v_faults := case when v_new.enabled then autopost.source_faults(v_new.kind, v_new.config_json) else '[]' end;
	if v_faults <> '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'errors', v_faults);
	end if;
	if not p_dry_run then
		insert into autopost.pull_sources as s (workspace_id, source_id, kind, config_json, enabled, stopped, created_at, updated_at)
		values (p_workspace_id, p_source_id, v_new.kind, v_new.config_json, v_new.enabled, v_new.stopped, autopost.now_ts(), autopost.now_ts())
		on conflict (workspace_id, source_id) do update
		set kind = excluded.kind, config_json = excluded.config_json, enabled = excluded.enabled, stopped = excluded.stopped, updated_at = excluded.updated_at;
		insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
		values (p_workspace_id, v_endpoint_id, 'pull_source', p_source_id)
		on conflict (workspace_id, endpoint_id) do nothing;
		update autopost.pull_cursors c
		set next_poll_at = least(c.next_poll_at, autopost.now_ts()), failures = 0
		where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
		perform autopost.audit(p_workspace_id, 'put_source', 'source:' || p_source_id, v_act, v_before, v_after);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'created', v_old.source_id is null, 'before', v_before, 'after', v_after);
end
$$;
