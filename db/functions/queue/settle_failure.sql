create or replace function autopost.allowed_rate(p_workspace_id text, p_channel autopost.channels, p_until timestamptz)
	returns numeric
language plpgsql stable
as $$
-- Purpose: the highest rate, in slots a second, that the platform allowed a channel up to p_until,
--          the end of the wait that it states now. Only posts since the last limit count, of the
--          last hundred. Null without such posts.
-- Reads:   deliveries.
begin
	return (select max(s.slots / greatest(0.001, extract(epoch from p_until - s.sent_at)))
	from (
		select r.sent_at, sum(greatest(1, jsonb_array_length(jsonb_path_query_array(r.render_meta,
			'$.steps[*].items[*]'))))
			over (order by r.sent_at desc, r.delivery_id desc) as slots
		from (
			select d.delivery_id, d.sent_at, d.render_meta from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = p_channel.channel_id
			and d.phase in ('sent', 'deduped', 'failed_permanent', 'dead')
			order by d.delivery_id desc
			limit 100) r
		where r.sent_at > autopost.now_ts() - interval '1 day'
		and (p_channel.limited_rps is null or r.sent_at > p_channel.last_limited_at)) s);
end
$$;

create or replace function autopost.slow_down(p_workspace_id text, p_channel autopost.channels, p_until timestamptz)
	returns void
language plpgsql
as $$
-- Purpose: lowers the rate of a channel whose platform reports too many requests, to just below
--          what the platform allowed until the end of its wait: at least to one post in the wait.
--          After a wait above ten minutes it halves the rate at most, unless the last two posts met
--          limits too: the limit may belong to a day. Limits without a post between them lower the
--          rate to one post a minute at most: such waits are guessed. A limit within a wait is not
--          counted, because its call started before. speed_up raises the rate again. The refused
--          call does not keep its slot: the next one is free when the wait ends. The channel is
--          locked.
-- Writes:  channels.
declare
	v_now timestamptz := autopost.now_ts();
	v_wait numeric := greatest(0.001, extract(epoch from p_until - v_now));
	v_allowed numeric := autopost.allowed_rate(p_workspace_id, p_channel, p_until);
	v_rate numeric := coalesce(nullif(p_channel.effective_rps, 0), greatest(1, 2 * v_allowed));
	v_next timestamptz;
begin
	if p_channel.cooldown_until > v_now then
		return;
	end if;
	select case when c.next_allowed_at is not null then least(c.next_allowed_at, greatest(p_until,
		v_now + autopost.slot_horizon() + coalesce(autopost.slot_step(c.rate_rps, 1), interval '0'))) end
	into v_next
	from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
	update autopost.channels c
	set next_allowed_at = v_next,
		limited_sends = 0, limited_rps = round(greatest(0.000001, least(v_rate, greatest(0.95 * v_allowed,
		case when v_wait > 600 and (p_channel.limited_rps is null or p_channel.limited_sends > 2) then v_rate / 2
			when p_channel.limited_rps > 0 and p_channel.limited_sends = 0
				then 1 / greatest(1 / v_rate, least(60, 1 / v_rate + v_wait))
			else 0.95 / (1 / v_rate + v_wait) end))), 9)
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
end
$$;

create or replace function autopost.cool_down(
	p_workspace_id text, p_channel autopost.channels, p_scope text, p_until timestamptz, p_error jsonb
) returns void
language plpgsql
as $$
-- Purpose: pauses a scope until p_until: the channel or its rate group. Two limited channels of a
--          group within 10 s pause the group. After a rate limit the channel is slower. The rows
--          are locked.
-- Writes:  channels, platform_limits, events (cooldown), alerts.
declare
	v_now timestamptz := autopost.now_ts();
	v_scope text := p_scope;
begin
	perform autopost.slow_down(p_workspace_id, p_channel, p_until) where autopost.is_rate_limit(p_error);
	if v_scope = 'channel' then
		if exists (
			select 1 from autopost.channels c
			where c.workspace_id = p_workspace_id and c.platform = p_channel.platform
				and c.rate_group = p_channel.rate_group
			and c.channel_id <> p_channel.channel_id
			and c.last_limited_at > v_now - interval '10 seconds'
		) then
			v_scope := 'platform';
		end if;
		update autopost.channels c
		set last_limited_at = v_now, cooldown_until = greatest(c.cooldown_until, p_until)
		where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
	end if;
	if v_scope = 'platform' then
		-- The row exists and is locked, unless the channel got another group during the wait for its lock.
		insert into autopost.platform_limits as l (workspace_id, platform, rate_group, rate_rps, cooldown_until,
			updated_at)
		values (p_workspace_id, p_channel.platform, p_channel.rate_group,
			autopost.platform_rate(p_channel.platform), p_until, v_now)
		on conflict (workspace_id, platform, rate_group) do update
		set cooldown_until = greatest(l.cooldown_until, excluded.cooldown_until), updated_at = excluded.updated_at;
	end if;
	perform autopost.emit_note(p_workspace_id, 'cooldown', 'ok', p_channel.channel_id, null, p_error,
		jsonb_build_object('scope', v_scope, 'rate_group', p_channel.rate_group, 'until', p_until));
	-- the operator should know of a wait this long
	if p_error ->> 'category' = 'TRANSIENT' and p_until >= v_now + interval '30 minutes' then
		perform autopost.raise_alert(p_workspace_id, 'platform_wait', case v_scope when 'channel'
			then 'channel:' || p_channel.channel_id
			else format('group:%s/%s', p_channel.platform, p_channel.rate_group) end, p_error,
				jsonb_build_object('until', p_until));
	end if;
end
$$;

create or replace function autopost.settle_unknown(p_workspace_id text, p_delivery autopost.deliveries,
	p_channel autopost.channels, p_error jsonb, p_least_seconds int default 0) returns jsonb
language plpgsql
as $$
-- Purpose: settles a call with an unknown outcome by the channel's on_unknown. hold waits for a
--          person. reconcile sends again at most unknown_allowance times (once) per delivery.
--          resend sends again while attempts are left; so does reconcile where a repeated call has
--          no effect (platforms.idempotent). A delivery that may not be sent again becomes
--          failed_permanent with the code unknown_outcome, or sent if only its first comment is missing.
--          Nothing is sent again before platforms.settle_seconds, p_least_seconds and the platform's own
--          wait are over.
-- Reads:   platforms, events.
-- Writes:  deliveries, channel_gates, events (unknown_outcome, retry_scheduled, failed_permanent,
--          send_attempt); as settle_comment.
declare
	v_error jsonb := p_error || jsonb_build_object('code', 'unknown_outcome', 'known', false,
		'cause', p_error -> 'code');
	v_policy autopost.retry_policies := autopost.retry_policy(p_workspace_id, p_channel.platform, 'unknown_outcome');
	v_delivery autopost.deliveries := p_delivery;
	v_platform autopost.platforms;
	v_on_unknown text := p_channel.on_unknown;
	v_next timestamptz;
	v_answer jsonb;
	v_now timestamptz;
begin
	select f.* into v_platform from autopost.platforms f where f.platform = p_channel.platform;
	if v_on_unknown = 'reconcile' and v_platform.idempotent then
		v_on_unknown := 'resend';
	end if;
	-- the call did start
	if autopost.call_started_at(p_delivery) is null then
		perform autopost.record_late_start(p_workspace_id, p_delivery);
		v_delivery.call_begun_at := p_delivery.claimed_at;
		p_delivery.call_begun_at := p_delivery.claimed_at;
	end if;
	v_delivery.unknown_outcomes := p_delivery.unknown_outcomes + 1;
	v_now := autopost.now_ts();
	update autopost.deliveries d
	set unknown_outcomes = v_delivery.unknown_outcomes, outcome_unknown_at = v_now
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	perform autopost.emit_event(p_workspace_id, 'unknown_outcome', 'error', v_delivery, v_error,
		jsonb_build_object('policy', v_on_unknown));
	if p_delivery.attempt >= autopost.max_attempts(v_policy, p_delivery)
	or (v_on_unknown = 'reconcile' and v_delivery.unknown_outcomes > p_delivery.unknown_allowance) then
		v_error := v_error || '{"category": "PERMANENT"}';
		v_answer := autopost.settle_comment(p_workspace_id, v_delivery, v_error);
		if v_answer is not null then
			return v_answer;
		end if;
		perform autopost.emit_event(p_workspace_id, 'failed_permanent', 'error', v_delivery, v_error, null);
		return autopost.finish_attempt(p_workspace_id, v_delivery, 'failed_permanent', v_error, null, null);
	end if;
	v_next := case v_on_unknown when 'hold' then 'infinity'::timestamptz
		else autopost.now_ts() + greatest(autopost.retry_delay(v_policy, p_delivery.attempt,
			(p_error ->> 'retry_after_ms')::numeric, random()::numeric),
			make_interval(secs => greatest(v_platform.settle_seconds, p_least_seconds))) end;
	perform autopost.emit_event(p_workspace_id, 'retry_scheduled', 'error', v_delivery, v_error,
		jsonb_build_object('next_retry_at', v_next));
	return autopost.finish_attempt(p_workspace_id, v_delivery, 'retry', v_error, v_next, null);
end
$$;

create or replace function autopost.limits_of_a_post() returns int
language sql immutable parallel safe
as $$
-- Purpose: how many rate limits a delivery survives. The bound only ends what no wait can help.
select 1000
$$;

create or replace function autopost.settle_transient(
	p_workspace_id text, p_delivery autopost.deliveries, p_channel autopost.channels, p_error jsonb,
		p_not_before timestamptz
) returns jsonb
language plpgsql
as $$
-- Purpose: settles a definite failure that may pass: retry by its policy, dead without attempts, or sent
--          if only the first comment is missing. A
--          stated wait or limit also pauses its scope. p_not_before is a lower bound. While the
--          breaker of the group is open, an outage does not cost an attempt; nor does a failure
--          whose policy says so, at most max_attempts times, nor a rate limit, at most
--          limits_of_a_post times: it says nothing about the post.
-- Writes:  deliveries, channels, platform_limits, channel_gates, events (retry_scheduled,
--          dead_letter, cooldown); as settle_comment.
declare
	v_policy autopost.retry_policies := autopost.retry_policy(p_workspace_id, p_channel.platform,
		autopost.policy_code(p_error));
	v_wait interval := autopost.retry_delay(v_policy, p_delivery.attempt, (p_error ->> 'retry_after_ms')::numeric,
		random()::numeric);
	v_next timestamptz := greatest(autopost.now_ts() + v_wait, p_not_before);
	v_granted boolean := (not v_policy.costs_attempt
		and p_delivery.granted_attempts < coalesce(v_policy.max_attempts, p_delivery.granted_attempts + 1))
		or (autopost.is_outage(p_error) and autopost.breaker_is_open(p_workspace_id, p_channel.platform,
			p_channel.rate_group))
		or (autopost.is_rate_limit(p_error) and p_delivery.granted_attempts < autopost.limits_of_a_post());
	v_answer jsonb;
begin
	if v_granted then
		p_delivery.granted_attempts := p_delivery.granted_attempts + 1;
		update autopost.deliveries d
		set granted_attempts = p_delivery.granted_attempts
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	end if;
	if p_error ->> 'scope' in ('channel', 'platform')
		and ((p_error ->> 'retry_after_ms')::numeric > 0 or autopost.is_rate_limit(p_error)) then
		perform autopost.cool_down(p_workspace_id, p_channel, p_error ->> 'scope', autopost.now_ts() + v_wait, p_error);
	end if;
	if p_delivery.attempt >= autopost.max_attempts(v_policy, p_delivery) then
		v_answer := autopost.settle_comment(p_workspace_id, p_delivery, p_error);
		if v_answer is not null then
			return v_answer;
		end if;
		perform autopost.emit_event(p_workspace_id, 'dead_letter', 'error', p_delivery, p_error, null);
		return autopost.finish_attempt(p_workspace_id, p_delivery, 'dead', p_error, null, null);
	end if;
	perform autopost.emit_event(p_workspace_id, 'retry_scheduled', 'error', p_delivery, p_error,
		jsonb_build_object('next_retry_at', v_next, 'granted', case when v_granted then true end));
	return autopost.finish_attempt(p_workspace_id, p_delivery, 'retry', p_error, v_next, null);
end
$$;

create or replace function autopost.settle_permanent(p_workspace_id text, p_delivery autopost.deliveries,
	p_channel autopost.channels, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: settles a failure that a retry cannot fix. Scope delivery: only this delivery fails.
--          Scope channel: the channel pauses, and is disabled after a streak; for a refused
--          credential, all its channels pause as long as deliveries may wait. Scope platform: the
--          rate group cools down. If only the first comment is missing, the post is sent, and
--          nothing pauses. The rows are locked.
-- Writes:  deliveries, channels, platform_limits, channel_gates, events (failed_permanent,
--          channel_paused, channel_disabled, cooldown); as settle_comment.
declare
	v_now timestamptz := autopost.now_ts();
	v_lost boolean := autopost.is_auth_lost(p_error);
	v_paused_until timestamptz := case when v_lost then autopost.auth_hold_until()
		else v_now + autopost.setting_interval('pause_on_permanent_seconds') end;
	v_streak int;
	v_answer jsonb := autopost.settle_comment(p_workspace_id, p_delivery, p_error);
begin
	if v_answer is not null then
		return v_answer;
	end if;
	perform autopost.emit_event(p_workspace_id, 'failed_permanent', 'error', p_delivery, p_error, null);
	v_answer := autopost.finish_attempt(p_workspace_id, p_delivery, 'failed_permanent', p_error, null, null);
	if p_error ->> 'scope' = 'channel' then
		update autopost.channels c
		set error_streak = c.error_streak + 1,
			paused_until = greatest(c.paused_until, v_paused_until),
			enabled = c.enabled and c.error_streak + 1 < autopost.setting('disable_after_permanent_streak'),
			auth_lost_at = case when v_lost and not (c.auth_held and c.paused_until > v_now)
				then v_now else c.auth_lost_at end,
			auth_held = v_lost or (c.auth_held and c.paused_until > v_now),
			updated_at = v_now
		where c.workspace_id = p_workspace_id and c.channel_id = p_delivery.channel_id
		returning c.error_streak into v_streak;
		perform autopost.emit_note(p_workspace_id, 'channel_paused', 'error', p_delivery.channel_id, null, p_error,
			jsonb_build_object('until', v_paused_until, 'streak', v_streak, 'delivery_id', p_delivery.delivery_id));
		if p_channel.enabled and v_streak >= autopost.setting('disable_after_permanent_streak') then
			perform autopost.emit_note(p_workspace_id, 'channel_disabled', 'error', p_delivery.channel_id, null,
				p_error,
				jsonb_build_object('streak', v_streak, 'delivery_id', p_delivery.delivery_id));
		end if;
		if v_lost then
			perform autopost.lose_auth(p_workspace_id, p_channel, p_error, v_paused_until);
		end if;
	elsif p_error ->> 'scope' = 'platform' then
		perform autopost.cool_down(p_workspace_id, p_channel, 'platform',
			v_now + autopost.setting_interval('platform_cooldown_seconds'), p_error);
	end if;
	return v_answer;
end
$$;
