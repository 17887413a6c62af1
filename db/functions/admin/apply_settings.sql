create or replace function autopost.apply_settings(p_values jsonb, p_operator text, p_reason text, p_dry_run boolean)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: changes several settings, {key: value}; null restores the default. The upload policies of
--          platforms are settings too: {"upload_policy_max": {"image": "url_allowed"}}. A dry run does
--          the same and rolls back. Changes are in the audit log of the operator's workspace. Works
--          across workspaces.
-- Returns: {"applied": true, "dry_run", "changes": [{"key", "before", "after"}]}; or {"applied":
--          false, "dry_run", "reason": "unchanged"}.
-- Raises:  AP001 for an unknown key, a value that guard_setting rejects, a retention that conflicts
--          with another rule, and without operator or reason.
-- Locks:   settings, platforms, audit_heads.
-- Reads:   channels, workspaces.
-- Writes:  settings, platforms, admin_audit_log.
declare
	v_act jsonb;
	v_changes jsonb;
begin
	perform autopost.enter_all_workspaces();
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	if jsonb_typeof(p_values) is distinct from 'object' then
		perform autopost.raise_argument('values', 'must be a JSON object', 'pass {"key": value}');
	end if;
	begin
		v_changes := autopost.change_settings(p_values, 'apply_settings', v_act);
		if p_dry_run then
			raise exception 'planned' using errcode = 'AP900';
		end if;
	exception when sqlstate 'AP900' then
		null; -- the writes are rolled back, the variables stay
	end;
	if v_changes = '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'changes', v_changes);
end
$$;
