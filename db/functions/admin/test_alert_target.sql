create or replace function autopost.test_alert_target(p_workspace_id text, p_target_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sends a test message to a target, regardless of its hours and limits. A daemon sends it
--          within the interval of its monitor. A mail address that is not confirmed gets another code
--          instead, at most every ten minutes.
-- Returns: {"applied": true, "dry_run", "message_id"}; or {"applied": false, "dry_run"} with reason
--          unknown_target, disabled, code_sent: less than ten minutes ago, or busy: another message is in
--          flight.
-- Locks:   alert_targets.
-- Writes:  alert_messages, alert_targets, admin_audit_log.
declare
	v_act jsonb;
	v_target autopost.alert_targets;
	v_message autopost.alert_messages;
	v_id uuid;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('target_id', p_target_id <> '');
	select t.* into v_target from autopost.alert_targets t
		where t.workspace_id = p_workspace_id and t.target_id = p_target_id;
	if v_target.target_id is null or not v_target.enabled then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_target.target_id is null then 'unknown_target' else 'disabled' end);
	elsif v_target.confirmed_at is null
		and (autopost.last_confirmation(v_target)).created_at > autopost.now_ts() - interval '10 minutes' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'code_sent');
	elsif p_dry_run then
		return '{"applied": true, "dry_run": true}';
	end if;
	if v_target.confirmed_at is null then
		v_message := autopost.confirm_message(v_target, autopost.now_ts());
	else
		v_message.kind := 'test';
		v_message.subject := format('[autopost %s] test', p_workspace_id);
		v_message.text := format(e'This is a test of autopost for workspace %s, asked for by %s.\nAlerts will come here.',
			p_workspace_id, autopost.redact(p_operator));
		v_message.body := jsonb_build_object('type', 'test', 'workspace_id', p_workspace_id);
	end if;
	insert into autopost.alert_messages (workspace_id, message_id, target_id, kind, status, subject, text, body,
		created_at)
	values (p_workspace_id, autopost.new_id(), p_target_id, v_message.kind, 'pending', v_message.subject, v_message.text,
		v_message.body, autopost.now_ts())
	on conflict (workspace_id, target_id) where status in ('pending', 'sending') do nothing
	returning message_id into v_id;
	if v_id is null then
		return '{"applied": false, "dry_run": false, "reason": "busy"}';
	end if;
	v_now := autopost.now_ts();
	update autopost.alert_targets t set next_try_at = v_now
		where t.workspace_id = p_workspace_id and t.target_id = p_target_id;
	perform autopost.audit(p_workspace_id, 'test_alert_target', 'alert_target:' || p_target_id, v_act, '{}', '{}');
	return jsonb_build_object('applied', true, 'dry_run', false, 'message_id', v_id);
end
$$;
