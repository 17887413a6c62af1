create or replace function autopost.claim_notices(p_workspace_id text, p_limit int, p_run_id text default null)
	returns setof jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases up to p_limit (1 to 100) messages for targets of a workspace to the caller, who
--          sends them and calls finish_notice. A target has one message in flight. A message with
--          an expired lease is sent once more and then counts as reported. A lease also ends when the
--          run p_run_id is silent (end_silent_leases). Only the engine may call it.
-- Returns: {"message_id", "token", "target_id", "kind": of the target, "address", "auth_ref",
--          "subject", "text", "body", "attempt"} each.
-- Locks:   alert_targets (skip locked), alerts.
-- Reads:   as compose_message.
-- Writes:  alert_messages, alert_notices, alerts.
declare
	v_target autopost.alert_targets;
	v_message autopost.alert_messages;
	v_now timestamptz;
	v_unconfirmed boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if coalesce(p_limit not between 1 and 100, true) then
		perform autopost.raise_argument('limit', 'must be between 1 and 100',
			'pass the number of messages to send at once');
	end if;
	if autopost.is_restored() then
		return;
	end if;
	for v_target in
		select t.* from autopost.alert_targets t
		where t.workspace_id = p_workspace_id and t.enabled and t.next_try_at <= autopost.now_ts()
		order by t.target_id
		for no key update of t skip locked
	loop
		v_now := autopost.now_ts();
		v_message := null;
		select m.* into v_message from autopost.alert_messages m
		where m.workspace_id = p_workspace_id and m.target_id = v_target.target_id
			and m.status in ('pending', 'sending');
		continue when v_message.lease_until > v_now;
		v_unconfirmed := v_target.confirmed_at is null;
		-- The target was changed after the message was written.
		if (v_message.kind = 'confirm') <> v_unconfirmed or v_message.body ->> 'address' <> v_target.address then
			perform autopost.end_message(v_message, 'failed', null);
			v_message := null;
		end if;
		if v_message.attempt >= 2 then
			perform autopost.end_message(v_message, 'unknown', null);
			v_message := null;
		end if;
		if v_message.message_id is null and v_unconfirmed then
			continue when (autopost.last_confirmation(v_target)).message_id is not null;
			v_message := autopost.confirm_message(v_target, v_now);
		elsif v_message.message_id is null then
			select c.* into v_message from autopost.compose_message(v_target, v_now) c;
			continue when v_message.message_id is null;
		end if;
		insert into autopost.alert_messages as m (workspace_id, message_id, target_id, kind, status, attempt,
			claim_token, lease_until, leased_by, subject, text, body, tells, created_at)
		values (p_workspace_id, v_message.message_id, v_target.target_id, v_message.kind, 'sending', 1,
			autopost.new_id()::text,
			v_now + autopost.setting_interval('alert_lease_seconds'), p_run_id, v_message.subject, v_message.text,
				v_message.body, v_message.tells, v_now)
		on conflict (workspace_id, message_id) do update
		set status = 'sending', attempt = m.attempt + 1, claim_token = excluded.claim_token,
			lease_until = excluded.lease_until, leased_by = excluded.leased_by
		returning m.* into v_message;
		return next jsonb_build_object('message_id', v_message.message_id, 'token', v_message.claim_token, 'target_id',
			v_target.target_id, 'kind', v_target.kind,
			'address', v_target.address, 'auth_ref', v_target.auth_ref, 'subject', v_message.subject, 'text',
				v_message.text, 'body', v_message.body, 'attempt', v_message.attempt);
		p_limit := p_limit - 1;
		exit when p_limit = 0;
	end loop;
end
$$;
