create or replace function autopost.disable_endpoint(
	p_workspace_id text, p_endpoint_id text, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: disables an endpoint. Its row stays, and another endpoint may use its secret.
-- Returns: as put_endpoint; or {"applied": false, "dry_run", "reason": "unknown_endpoint" |
--          "unchanged"}.
-- Locks:   workspaces, workspace_endpoints, audit_heads.
-- Writes:  workspace_endpoints, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.workspace_endpoints;
	v_new autopost.workspace_endpoints;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := jsonb_build_object('function', 'disable_endpoint', 'meta',
		autopost.manual_act(p_operator, p_reason, p_dry_run), 'dry_run', p_dry_run);
	v_old := autopost.endpoint_to_change(p_workspace_id, p_endpoint_id, p_dry_run);
	if v_old.endpoint_id is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_endpoint');
	end if;
	v_new := v_old;
	v_new.enabled := false;
	v_new.awaits_secret := false;
	return autopost.change_endpoint(v_old, v_new, v_act);
end
$$;
