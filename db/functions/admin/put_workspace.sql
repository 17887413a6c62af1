create or replace function autopost.put_workspace(p_workspace_id text, p_fields jsonb, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a workspace. p_fields has changed fields: name, status (active; paused:
--          accepts posts, starts no calls; disabled: refuses posts), approvals_needed (1 or 2 people
--          for each moderated post); null restores the default. The role of the caller must have
--          access to the id of a new workspace.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces.
-- Writes:  workspaces, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := '{"name": {"is": "text", "default": ""}, "status": {"is": "text", "default": "active", "in": ["active", "paused", "disabled"]}, "approvals_needed": {"is": "integer", "default": 1, "min": 1, "max": 2}}';
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_new_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(w), v_rules) from autopost.workspaces w
		where w.workspace_id = p_workspace_id);
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, null, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		insert into autopost.workspaces (workspace_id, name, status, approvals_needed, created_at, updated_at)
		values (p_workspace_id, v_put -> 'after' ->> 'name', v_put -> 'after' ->> 'status',
			(v_put -> 'after' ->> 'approvals_needed')::int, autopost.now_ts(), autopost.now_ts())
		on conflict (workspace_id) do update set name = excluded.name, status = excluded.status,
			approvals_needed = excluded.approvals_needed, updated_at = excluded.updated_at;
		perform autopost.audit(p_workspace_id, 'put_workspace', 'workspace:' || p_workspace_id, v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
