create or replace function autopost.put_endpoint(
	p_workspace_id text, p_endpoint_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes an endpoint. p_fields has changed fields (see endpoint_rules); null
--          restores the default or clears a field. kind and source_id cannot change. secret_hash
--          (SHA-256) or signing_ref (auth_ref of a credential of platform webhook) sets a missing
--          secret; rotate_endpoint replaces one. A webhook without both is disabled until it gets
--          one; awaits_secret shows this.
-- Returns: {"applied": true, "dry_run", "endpoint_id", "created", "before", "after", "bound": true
--          if the credential of signing_ref exists, "note": work that is left}, the last two only
--          if they apply; or {"applied": false, "dry_run"} with reason unchanged, secret_in_use,
--          source_in_use, or invalid and "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, workspace_endpoints, audit_heads.
-- Writes:  workspace_endpoints, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.workspace_endpoints;
	v_new autopost.workspace_endpoints;
	v_put jsonb;
	v_errors jsonb;
	v_wanted boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := jsonb_build_object('function', 'put_endpoint', 'meta',
		autopost.manual_act(p_operator, p_reason, p_dry_run), 'dry_run', p_dry_run);
	v_old := autopost.endpoint_to_change(p_workspace_id, p_endpoint_id, p_dry_run);
	perform autopost.check_new_id('endpoint_id', p_endpoint_id) where v_old.endpoint_id is null;
	v_put := autopost.put_row(case jsonb_typeof(p_fields) when 'object' then p_fields - 'secret_hash' else p_fields end,
		autopost.endpoint_rules(), autopost.endpoint_fields(v_old));
	if v_put -> 'errors' = '[]' then
		v_errors := autopost.endpoint_errors(p_workspace_id, v_old, v_put -> 'after', p_fields -> 'secret_hash');
	end if;
	if v_errors is distinct from '[]' then
		return autopost.put_answer(v_put, v_errors, p_dry_run);
	end if;
	v_new := jsonb_populate_record(v_old, v_put -> 'after');
	v_new.workspace_id := p_workspace_id;
	v_new.endpoint_id := p_endpoint_id;
	v_new.secret_hash := coalesce(p_fields ->> 'secret_hash', v_old.secret_hash);
	v_wanted := v_new.enabled;
	v_new.enabled := v_wanted and (v_new.kind = 'pull_source'
		or coalesce(v_new.secret_hash, v_new.signing_ref) is not null);
	v_new.awaits_secret := v_wanted and not v_new.enabled;
	if v_new.signing_ref is null then
		v_new.old_signing_ref := null;
		v_new.old_signing_until := null;
	end if;
	return autopost.change_endpoint(v_old, v_new, v_act);
end
$$;
