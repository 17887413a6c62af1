create or replace function autopost.cool_down(
	p_workspace_id text, p_channel autopost.channels, p_scope text, p_until timestamptz, p_error jsonb
) returns void
language plpgsql
as $$
-- Nothing of the scope may start before p_until: the channel, or its whole rate group. Two channels of a group that are limited
-- inside limit_escalation_seconds make it the group's. Rows are locked by now.
-- Writes: channels, platform_limits, events(cooldown).
declare
	v_now timestamptz := autopost.now_ts();
	v_scope text := p_scope;
begin
	if v_scope = 'channel' then
		if exists (
			select 1 from autopost.channels c
			where c.workspace_id = p_workspace_id and c.platform = p_channel.platform and c.rate_group = p_channel.rate_group
			and c.channel_id <> p_channel.channel_id
			and c.last_limited_at > v_now - autopost.setting_interval('limit_escalation_seconds')
		) then
			v_scope := 'platform';
		end if;
		update autopost.channels c
		set last_limited_at = v_now, cooldown_until = greatest(c.cooldown_until, p_until)
		where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
	end if;
	if v_scope = 'platform' then
		-- The row is there and locked, unless the channel was given another group while its lock was waited for.
		insert into autopost.platform_limits as l (workspace_id, platform, rate_group, cooldown_until, updated_at)
		values (p_workspace_id, p_channel.platform, p_channel.rate_group, p_until, v_now)
		on conflict (workspace_id, platform, rate_group) do update
		set cooldown_until = greatest(l.cooldown_until, excluded.cooldown_until), updated_at = excluded.updated_at;
	end if;
	perform autopost.emit_note(p_workspace_id, 'cooldown', 'ok', p_channel.channel_id, null, p_error,
		jsonb_build_object('scope', v_scope, 'rate_group', p_channel.rate_group, 'until', p_until));
end
$$;

create or replace function autopost.settle_unknown(p_workspace_id text, p_delivery autopost.deliveries, p_channel autopost.channels, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Nobody knows whether the platform took the post. Recorded, then by the channel's on_unknown: hold waits for a person; reconcile
-- sends again at most unknown_allowance times (once) in the life of the delivery; resend as often as attempts allow, and so does
-- reconcile where every call bears the delivery's key, so that it is no blind copy (platforms.idempotent).
-- What may not be sent again ends failed_permanent with code unknown_outcome: never dead, never twice. Nothing is sent again before the
-- platform would show what it made (platforms.settle_seconds).
-- Reads: platforms, events. Writes: deliveries, channel_gates, events(unknown_outcome, retry_scheduled | failed_permanent; send_attempt where start_call
-- was left out).
declare
	v_error jsonb := p_error || jsonb_build_object('code', 'unknown_outcome', 'known', false, 'cause', p_error -> 'code');
	v_policy autopost.retry_policies := autopost.retry_policy(p_channel.platform, 'unknown_outcome');
	v_delivery autopost.deliveries := p_delivery;
	v_platform autopost.platforms;
	v_on_unknown text := p_channel.on_unknown;
	v_next timestamptz;
begin
	select f.* into v_platform from autopost.platforms f where f.platform = p_channel.platform;
	if v_on_unknown = 'reconcile' and v_platform.idempotent then
		v_on_unknown := 'resend';
	end if;
	perform autopost.tell_late_start(p_workspace_id, p_delivery) where autopost.call_started_at(p_delivery) is null; -- there was one
	v_delivery.unknown_outcomes := p_delivery.unknown_outcomes + 1;
	update autopost.deliveries d
	set unknown_outcomes = v_delivery.unknown_outcomes, outcome_unknown_at = autopost.now_ts()
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	perform autopost.emit_event(p_workspace_id, 'unknown_outcome', 'error', v_delivery, v_error, jsonb_build_object('policy', v_on_unknown));
	if p_delivery.attempt >= autopost.max_attempts(v_policy, p_delivery)
	or (v_on_unknown = 'reconcile' and v_delivery.unknown_outcomes > p_delivery.unknown_allowance) then
		v_error := v_error || '{"category": "PERMANENT"}';
		perform autopost.emit_event(p_workspace_id, 'failed_permanent', 'error', v_delivery, v_error, null);
		return autopost.leave_flight(p_workspace_id, v_delivery, 'failed_permanent', v_error, null, null);
	end if;
	v_next := case v_on_unknown when 'hold' then 'infinity'::timestamptz
		else autopost.now_ts() + greatest(autopost.retry_delay(v_policy, p_delivery.attempt, null, random()::numeric), make_interval(secs => v_platform.settle_seconds)) end;
	perform autopost.emit_event(p_workspace_id, 'retry_scheduled', 'error', v_delivery, v_error, jsonb_build_object('next_retry_at', v_next));
	return autopost.leave_flight(p_workspace_id, v_delivery, 'retry', v_error, v_next, null);
end
$$;

create or replace function autopost.settle_transient(
	p_workspace_id text, p_delivery autopost.deliveries, p_channel autopost.channels, p_error jsonb, p_not_before timestamptz
) returns jsonb
language plpgsql
as $$
-- A definite failure that may pass: retry by the policy of its platform and code, dead when the attempts are used up. A wait
-- that the platform gave, or a limit that it names without one, also cools its scope down. attempt is not touched. p_not_before is only a lower bound. While the group's breaker
-- is open, a failure for the same reasons is no fault of the post: the attempt is granted again; so is one that the policy says costs none,
-- as often as its max_attempts says.
-- Writes: deliveries, channels, platform_limits, channel_gates, events(retry_scheduled | dead_letter, cooldown).
declare
	v_policy autopost.retry_policies := autopost.retry_policy(p_channel.platform, autopost.policy_code(p_error));
	v_wait interval := autopost.retry_delay(v_policy, p_delivery.attempt, (p_error ->> 'retry_after_ms')::numeric, random()::numeric);
	v_next timestamptz := greatest(autopost.now_ts() + v_wait, p_not_before);
	v_granted boolean := (not v_policy.costs_attempt and p_delivery.granted_attempts < coalesce(v_policy.max_attempts, p_delivery.granted_attempts + 1))
		or (autopost.is_outage(p_error) and autopost.breaker_is_open(p_workspace_id, p_channel.platform, p_channel.rate_group));
begin
	if v_granted then
		p_delivery.granted_attempts := p_delivery.granted_attempts + 1;
		update autopost.deliveries d
		set granted_attempts = p_delivery.granted_attempts
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	end if;
	if p_error ->> 'scope' in ('channel', 'platform') and ((p_error ->> 'retry_after_ms')::numeric > 0 or autopost.is_rate_limit(p_error)) then
		perform autopost.cool_down(p_workspace_id, p_channel, p_error ->> 'scope', autopost.now_ts() + v_wait, p_error);
	end if;
	if p_delivery.attempt >= autopost.max_attempts(v_policy, p_delivery) then
		perform autopost.emit_event(p_workspace_id, 'dead_letter', 'error', p_delivery, p_error, null);
		return autopost.leave_flight(p_workspace_id, p_delivery, 'dead', p_error, null, null);
	end if;
	perform autopost.emit_event(p_workspace_id, 'retry_scheduled', 'error', p_delivery, p_error,
		jsonb_build_object('next_retry_at', v_next, 'granted', case when v_granted then true end));
	return autopost.leave_flight(p_workspace_id, p_delivery, 'retry', p_error, v_next, null);
end
$$;

create or replace function autopost.settle_permanent(p_workspace_id text, p_delivery autopost.deliveries, p_channel autopost.channels, p_error jsonb) returns jsonb
language plpgsql
as $$
-- A failure that trying again cannot mend. Scope delivery: this row alone. Scope channel: the channel pauses, and after a streak is
-- disabled; where the credential itself is refused, for as long as its queue may wait, and with all that use it. Scope platform: the rate
-- group rests. Rows are locked by now.
-- Writes: deliveries, channels, platform_limits, channel_gates, events(failed_permanent, channel_paused, channel_disabled, cooldown).
declare
	v_now timestamptz := autopost.now_ts();
	v_lost boolean := autopost.is_auth_lost(p_error);
	v_paused_until timestamptz := case when v_lost then autopost.auth_hold_until()
		else v_now + autopost.setting_interval('pause_on_permanent_seconds') end;
	v_streak int;
	v_answer jsonb;
begin
	perform autopost.emit_event(p_workspace_id, 'failed_permanent', 'error', p_delivery, p_error, null);
	v_answer := autopost.leave_flight(p_workspace_id, p_delivery, 'failed_permanent', p_error, null, null);
	if p_error ->> 'scope' = 'channel' then
		update autopost.channels c
		set error_streak = c.error_streak + 1,
			paused_until = greatest(c.paused_until, v_paused_until),
			enabled = c.enabled and c.error_streak + 1 < autopost.setting('disable_after_permanent_streak'),
			auth_lost_at = case when v_lost and not (c.auth_held and c.paused_until > v_now) then v_now else c.auth_lost_at end,
			auth_held = v_lost or (c.auth_held and c.paused_until > v_now),
			updated_at = v_now
		where c.workspace_id = p_workspace_id and c.channel_id = p_delivery.channel_id
		returning c.error_streak into v_streak;
		perform autopost.emit_note(p_workspace_id, 'channel_paused', 'error', p_delivery.channel_id, null, p_error,
			jsonb_build_object('until', v_paused_until, 'streak', v_streak, 'delivery_id', p_delivery.delivery_id));
		if p_channel.enabled and v_streak >= autopost.setting('disable_after_permanent_streak') then
			perform autopost.emit_note(p_workspace_id, 'channel_disabled', 'error', p_delivery.channel_id, null, p_error,
				jsonb_build_object('streak', v_streak, 'delivery_id', p_delivery.delivery_id));
		end if;
		if v_lost then
			perform autopost.lose_auth(p_workspace_id, p_channel, p_error, v_paused_until);
		end if;
	elsif p_error ->> 'scope' = 'platform' then
		perform autopost.cool_down(p_workspace_id, p_channel, 'platform', v_now + autopost.setting_interval('platform_cooldown_seconds'), p_error);
	end if;
	return v_answer;
end
$$;
