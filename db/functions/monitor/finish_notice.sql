create or replace function autopost.finish_notice(p_workspace_id text, p_message_id uuid, p_token text, p_error jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a message to a target; p_error is null if it was sent, else the failure (error
--          contract). After an unknown outcome it is sent once more. After a definite failure a new
--          message reports the present state, with delays of up to an hour. A target with three
--          failures, or a refusal, raises an alert for the other targets. Only the engine may call
--          it.
-- Returns: {"applied": true, "status"}; or {"applied": false, "reason": "stale" |
--          "unknown_message"}.
-- Locks:   alert_targets, alerts.
-- Writes:  alert_messages, alert_targets, alert_notices, alerts.
declare
	v_target autopost.alert_targets;
	v_message autopost.alert_messages;
	v_now timestamptz;
	v_failures int;
	v_error jsonb;
	v_next_try_at timestamptz;
	v_status text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('message_id', p_message_id is not null),
		autopost.require_argument('token', p_token <> '');
	select t.* into v_target from autopost.alert_targets t
	where t.workspace_id = p_workspace_id and t.target_id = (
		select m.target_id from autopost.alert_messages m
			where m.workspace_id = p_workspace_id and m.message_id = p_message_id)
	for no key update of t;
	select m.* into v_message from autopost.alert_messages m
		where m.workspace_id = p_workspace_id and m.message_id = p_message_id;
	if v_message.message_id is null then
		return '{"applied": false, "reason": "unknown_message"}';
	elsif v_message.claim_token is distinct from p_token then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_now := autopost.now_ts();
	v_failures := case when p_error is null then 0 else v_target.failures + 1 end;
	v_status := case when p_error is null then 'sent' when p_error -> 'known' is distinct from 'false' then 'failed'
		when v_message.attempt >= 2 then 'unknown' else 'pending' end;
	v_next_try_at := case when p_error is null then v_now
		else v_now + greatest(least(interval '1 minute' * 2 ^ least(v_failures - 1, 6), interval '1 hour'),
			make_interval(secs => coalesce((p_error ->> 'retry_after_ms')::numeric, 0) / 1000)) end;
	v_error := case when p_error is not null then autopost.normalised_error(p_error) end;
	update autopost.alert_targets t
	set failures = v_failures, last_error = v_error, next_try_at = v_next_try_at
	where t.workspace_id = p_workspace_id and t.target_id = v_target.target_id;
	if v_status = 'pending' then
		update autopost.alert_messages m set status = 'pending', claim_token = null, lease_until = null
		where m.workspace_id = p_workspace_id and m.message_id = p_message_id;
	else
		perform autopost.end_message(v_message, v_status, p_error);
	end if;
	if p_error is null then
		perform autopost.end_alert(p_workspace_id, 'alert_target_failing', 'target:' || v_target.target_id);
	elsif v_failures >= 3 or p_error ->> 'category' = 'PERMANENT' then
		perform autopost.raise_alert(p_workspace_id, 'alert_target_failing', 'target:' || v_target.target_id, p_error,
			jsonb_build_object('failures', v_failures));
	end if;
	return jsonb_build_object('applied', true, 'status', v_status);
end
$$;
