create or replace function autopost.confirm_alert_target(p_workspace_id text, p_target_id text, p_code text,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: confirms the mail address of an alert target by the code that was sent to it. Only then
--          alerts go there. A code is valid for a day and for ten tries; test_alert_target sends another.
-- Returns: {"applied": true, "dry_run"}; or {"applied": false, "dry_run"} with reason unknown_target,
--          unchanged: confirmed, or needs no confirmation, no_code: none is valid, or wrong_code.
-- Raises:  AP001 for a wrong argument.
-- Locks:   alert_targets.
-- Writes:  alert_targets, alert_messages, admin_audit_log.
declare
	v_act jsonb;
	v_target autopost.alert_targets;
	v_sent autopost.alert_messages;
	v_reason text;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('target_id', p_target_id <> ''), autopost.require_argument('code', p_code <> '');
	select t.* into v_target from autopost.alert_targets t
	where t.workspace_id = p_workspace_id and t.target_id = p_target_id
	for no key update of t;
	v_sent := autopost.last_confirmation(v_target);
	v_reason := case
		when v_target.target_id is null then 'unknown_target'
		when v_target.confirmed_at is not null then 'unchanged'
		when v_sent.message_id is null or v_sent.created_at <= autopost.now_ts() - interval '1 day'
			or (v_sent.body ->> 'tries')::int >= 10 then 'no_code'
		when v_sent.body ->> 'code' <> lower(btrim(p_code)) then 'wrong_code' end;
	if v_reason = 'wrong_code' then
		v_sent.body := jsonb_set(v_sent.body, '{tries}', to_jsonb((v_sent.body ->> 'tries')::int + 1));
		update autopost.alert_messages m
		set body = v_sent.body
		where m.workspace_id = p_workspace_id and m.message_id = v_sent.message_id;
	end if;
	if v_reason is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_reason);
	elsif not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.alert_targets t set confirmed_at = v_now, next_try_at = v_now
		where t.workspace_id = p_workspace_id and t.target_id = p_target_id;
		perform pg_notify('autopost_wake', 'alerts');
		perform autopost.audit(p_workspace_id, 'confirm_alert_target', 'alert_target:' || p_target_id, v_act, '{}',
			jsonb_build_object('address', v_target.address));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run);
end
$$;
