create or replace function autopost.put_alert_target(
	p_workspace_id text, p_target_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes an alert target. p_fields has changed fields (see alert_target_rules);
--          null restores the default. After a change its next message is due at once. A new mail
--          address gets a code first, see confirm_alert_target.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "note": if alerts about a
--          credential of channels cannot arrive}, or {"applied": false, "dry_run"} with reason
--          unchanged, or invalid and "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, alert_targets.
-- Reads:   platforms, credential_bindings, channels, channel_auth.
-- Writes:  alert_targets, admin_audit_log.
declare
	v_act jsonb;
	v_rules jsonb := autopost.alert_target_rules();
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
	v_new autopost.alert_targets;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('target_id', p_target_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(t), v_rules) from autopost.alert_targets t
		where t.workspace_id = p_workspace_id and t.target_id = p_target_id);
	perform autopost.check_new_id('target_id', p_target_id) where v_before is null;
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.alert_target_errors(p_workspace_id, v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'true' then
		v_answer := v_answer || autopost.alert_target_note(p_workspace_id, p_target_id, v_put -> 'after');
	end if;
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		v_new := jsonb_populate_record(null::autopost.alert_targets, v_put -> 'after');
		v_now := autopost.now_ts();
		insert into autopost.alert_targets as t (workspace_id, target_id, kind, address, auth_ref, enabled,
			min_severity, kinds, quiet_hours, timezone, quiet_critical,
			digest_minutes, daily_limit, health_at, health_on_alert, health_next_at, next_try_at, created_at,
				updated_at, confirmed_at)
		values (p_workspace_id, p_target_id, v_new.kind, v_new.address, v_new.auth_ref, v_new.enabled,
			v_new.min_severity, v_new.kinds, v_new.quiet_hours, v_new.timezone,
			v_new.quiet_critical, v_new.digest_minutes, v_new.daily_limit, v_new.health_at, v_new.health_on_alert,
			autopost.next_health(v_new.health_at, v_new.timezone, v_now), v_now, v_now, v_now,
			case when v_new.kind <> 'email' then v_now end)
		on conflict (workspace_id, target_id) do update
		set address = excluded.address, auth_ref = excluded.auth_ref, enabled = excluded.enabled,
			min_severity = excluded.min_severity, kinds = excluded.kinds,
			quiet_hours = excluded.quiet_hours, timezone = excluded.timezone, quiet_critical = excluded.quiet_critical,
				digest_minutes = excluded.digest_minutes,
			daily_limit = excluded.daily_limit, health_at = excluded.health_at,
				health_on_alert = excluded.health_on_alert, health_next_at = excluded.health_next_at,
			next_try_at = excluded.next_try_at, updated_at = excluded.updated_at,
			confirmed_at = case when t.kind <> 'email' or t.address = excluded.address then t.confirmed_at end;
		perform autopost.end_alert(p_workspace_id, 'alert_target_failing', 'target:' || p_target_id)
			where not v_new.enabled;
		perform autopost.audit(p_workspace_id, 'put_alert_target', 'alert_target:' || p_target_id, v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
