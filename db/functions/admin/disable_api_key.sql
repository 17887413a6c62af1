create or replace function autopost.disable_api_key(p_workspace_id text, p_key_id uuid, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: disables a key for ever; it stays listed. A dry run changes nothing.
-- Returns: {"applied": true, "dry_run", "before", "after"}; or {"applied": false, "dry_run",
--          "reason": "unknown_key" | "unchanged"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   api_keys.
-- Writes:  api_keys, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.api_keys;
	v_new autopost.api_keys;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('key_id', p_key_id is not null);
	if not p_dry_run then
		perform 1 from autopost.api_keys k where k.workspace_id = p_workspace_id
			and k.key_id = p_key_id for no key update of k;
	end if;
	select k.* into v_old from autopost.api_keys k where k.workspace_id = p_workspace_id and k.key_id = p_key_id;
	if v_old.enabled is not true then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_old.key_id is null then 'unknown_key' else 'unchanged' end);
	end if;
	v_new := v_old;
	v_new.enabled := false;
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.api_keys k
		set enabled = false, updated_at = v_now
		where k.workspace_id = p_workspace_id and k.key_id = p_key_id;
		perform autopost.audit(p_workspace_id, 'disable_api_key', 'api_key:' || p_key_id, v_act,
			autopost.api_key_shown(v_old), autopost.api_key_shown(v_new));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', autopost.api_key_shown(v_old), 'after',
		autopost.api_key_shown(v_new));
end
$$;
