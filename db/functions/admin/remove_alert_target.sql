create or replace function autopost.remove_alert_target(p_workspace_id text, p_target_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes an alert target with its notices. To stop its messages for a time, disable it
--          with put_alert_target.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run",
--          "reason": "unknown_target"}.
-- Locks:   workspaces, alert_targets.
-- Writes:  alert_targets, alert_messages, alert_notices, alerts, admin_audit_log.
declare
	v_act jsonb;
	v_before jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('target_id', p_target_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(t), autopost.alert_target_rules()) from autopost.alert_targets t
		where t.workspace_id = p_workspace_id and t.target_id = p_target_id);
	if v_before is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_target');
	end if;
	v_before := autopost.fields_that_differ(v_before, autopost.default_fields(autopost.alert_target_rules()));
	if not p_dry_run then
		delete from autopost.alert_targets t where t.workspace_id = p_workspace_id and t.target_id = p_target_id;
		perform autopost.end_alert(p_workspace_id, 'alert_target_failing', 'target:' || p_target_id);
		perform autopost.audit(p_workspace_id, 'remove_alert_target', 'alert_target:' || p_target_id, v_act, v_before,
			'{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', '{}'::jsonb);
end
$$;
