create or replace function autopost.put_source(
	p_workspace_id text, p_source_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a source. p_fields has changed fields (see source_rules); null restores
--          the default. config_json is merged by key, null removes a key; a new kind replaces it. A
--          new source gets an endpoint of kind pull_source, by default with its own id
--          (endpoint_id). A changed or enabled source is polled at once. To remove a source,
--          disable it.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, with masked secrets; or
--          {"applied": false, "dry_run"} with reason unchanged, or invalid and "errors": [{"field",
--          "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, pull_sources, pull_cursors, audit_heads, in this order.
-- Writes:  pull_sources, workspace_endpoints, pull_cursors, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.pull_sources;
	v_new autopost.pull_sources;
	v_put jsonb;
	v_answer jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('source_id', p_source_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	select s.* into v_old from autopost.pull_sources s where s.workspace_id = p_workspace_id
		and s.source_id = p_source_id;
	perform autopost.check_new_id('source_id', p_source_id),
		autopost.check_new_id('endpoint_id', p_fields ->> 'endpoint_id') where v_old.source_id is null;
	v_put := autopost.source_fields(v_old);
	v_put := autopost.put_row(autopost.source_fields_to_put(p_source_id, v_put, p_fields),
		autopost.source_rules(p_source_id), v_put);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]' then
		autopost.source_errors(p_workspace_id, v_put -> 'before', v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' <> 'true' then
		return v_answer;
	end if;
	v_answer := v_answer || jsonb_build_object('before', autopost.masked_fields(v_answer -> 'before'), 'after',
		autopost.masked_fields(v_answer -> 'after'));
	if not p_dry_run then
		v_new := jsonb_populate_record(v_old, v_put -> 'after');
		insert into autopost.pull_sources as s (workspace_id, source_id, kind, config_json, enabled, stopped,
			created_at, updated_at)
		values (p_workspace_id, p_source_id, v_new.kind, v_new.config_json, v_new.enabled, case
			when not v_new.enabled then v_old.stopped end, autopost.now_ts(), autopost.now_ts())
		on conflict (workspace_id, source_id) do update
		set kind = excluded.kind, config_json = excluded.config_json, enabled = excluded.enabled,
			stopped = excluded.stopped, updated_at = excluded.updated_at;
		insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
		values (p_workspace_id, v_put -> 'after' ->> 'endpoint_id', 'pull_source', p_source_id)
		on conflict (workspace_id, endpoint_id) do nothing;
		v_now := autopost.now_ts();
		update autopost.pull_cursors c
		set next_poll_at = least(c.next_poll_at, v_now), failures = 0
		where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
		perform autopost.audit(p_workspace_id, 'put_source', 'source:' || p_source_id, v_act, v_answer -> 'before',
			v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
