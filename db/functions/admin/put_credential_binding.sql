create or replace function autopost.put_credential_binding(
	p_workspace_id text, p_auth_ref text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sets the location of a credential's secret. The secret is never passed. p_fields:
--          platform, which cannot change; secret_ref: env:NAME, file:/path or sealed:NAME; hosts: the
--          hosts that get a secret of platform http. Only the engine may call it.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces.
-- Writes:  credential_bindings, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := '{"platform": {"is": "text", "required": true, "fixed": true}, "secret_ref": {"is": "text", "required": true, "remedy": "write env:NAME, file:/path or sealed:NAME"}, "hosts": {"is": "list"}}';
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('auth_ref', p_auth_ref <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(b), v_rules) from autopost.credential_bindings b
		where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref);
	perform autopost.check_new_id('auth_ref', p_auth_ref) where v_before is null;
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.binding_errors(v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref, hosts, updated_at)
		values (p_workspace_id, p_auth_ref, v_put -> 'after' ->> 'platform', v_put -> 'after' ->> 'secret_ref',
			autopost.texts_of(v_put #> '{after,hosts}'), autopost.now_ts())
		on conflict (workspace_id, auth_ref) do update
		set secret_ref = excluded.secret_ref, hosts = excluded.hosts, rotated_at = excluded.updated_at, updated_at = excluded.updated_at;
		perform autopost.audit(p_workspace_id, 'put_credential_binding', 'credential:' || p_auth_ref, v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
