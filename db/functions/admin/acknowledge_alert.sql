create or replace function autopost.acknowledge_alert(p_workspace_id text, p_alert_id uuid, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: marks an alert as seen by an operator. It sends no reminder until its amount is ten
--          times as large. It ends as usual; present dead deliveries and unknown outcomes no longer
--          count, so a later one raises it again.
-- Returns: {"applied": true, "dry_run", "before", "after"}; or {"applied": false, "dry_run"} with
--          reason unknown_alert, ended or unchanged.
-- Locks:   alerts.
-- Writes:  alerts, admin_audit_log.
declare
	v_act jsonb;
	v_alert autopost.alerts;
	v_after jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('alert_id', p_alert_id is not null);
	select a.* into v_alert from autopost.alerts a where a.workspace_id = p_workspace_id
		and a.alert_id = p_alert_id for no key update of a;
	if v_alert.alert_id is null or v_alert.ended_at is not null or v_alert.acknowledged_at is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_alert.alert_id is null then 'unknown_alert' when v_alert.ended_at is not null then 'ended'
				else 'unchanged' end);
	end if;
	v_after := jsonb_build_object('acknowledged_by', p_operator);
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.alerts a set acknowledged_at = v_now, acknowledged_by = p_operator
		where a.workspace_id = p_workspace_id and a.alert_id = p_alert_id;
		perform autopost.audit(p_workspace_id, 'acknowledge_alert',
			format('alert:%s/%s', v_alert.kind, v_alert.subject), v_act, '{}', v_after);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', '{}'::jsonb, 'after', v_after);
end
$$;
