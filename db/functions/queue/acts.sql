-- Post changes: rows of post_acts. The delivery stays sent, whatever their outcome.

create or replace function autopost.sent_ids(p_render_meta jsonb, p_provider_message_id text,
	p_platform autopost.platforms) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the platform's ids of all parts of a sent delivery, {step: [ids]}; null unless all are
--          known. A delivery of one message always has its id.
declare
	v_plan jsonb := jsonb_path_query_array(p_render_meta, '$.steps[*] ? (!(@.aside == true))');
	v_known jsonb := coalesce(p_render_meta -> 'series_progress' -> 'steps', '{}');
begin
	if not exists (select 1 from jsonb_array_elements(v_plan) s
		where coalesce(v_known -> (s.value ->> 'step'), '[]') = '[]') then
		return v_known;
	elsif jsonb_array_length(v_plan) = 1 and not (p_platform.item_captions
		and coalesce(jsonb_array_length(v_plan -> 0 -> 'items'), 0) > 1) then
		return jsonb_build_object(v_plan -> 0 ->> 'step', jsonb_build_array(p_provider_message_id));
	end if;
	return null;
end
$$;

create or replace function autopost.act_cost(p_act autopost.post_acts, p_delivery autopost.deliveries) returns int
language sql immutable parallel safe
as $$
-- Purpose: the slots of a post change: one call per message; a pin concerns the first message of each part.
select greatest(1, case when p_act.kind in ('pin', 'unpin') then (
	select max((s.value -> 'part')::int) from jsonb_array_elements(p_delivery.render_meta -> 'steps') s)
	when p_act.kind in ('edit', 'delete') then (
	select count(*)::int from jsonb_array_elements(p_delivery.render_meta -> 'steps') s
	where coalesce(s.value -> 'aside', 'false') = 'false' and (p_act.kind = 'delete' or s.value -> 'text' = 'true'))
		end)
$$;

create or replace function autopost.act_waits_until(p_act autopost.post_acts, p_delivery autopost.deliveries,
	p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: when to check a post change again whose delivery is not sent yet or has another change
--          before it; null if it may start. A removal waits only for a running change.
-- Reads:   post_acts.
begin
	if p_delivery.status <> 'sent' then
		return p_now + case when p_delivery.status in ('queued', 'retry', 'claimed', 'sending')
			then interval '30 seconds' else interval '1 hour' end;
	end if;
	return (
		select greatest(min(o.next_at), p_now + interval '1 second') from autopost.post_acts o
		where o.workspace_id = p_act.workspace_id and o.delivery_id = p_act.delivery_id and o.act_id <> p_act.act_id
		and (o.status = 'sending' and o.next_at > p_now
			or p_act.kind <> 'delete' and o.status in ('queued', 'sending', 'retry')
				and (o.due_at, o.act_id) < (p_act.due_at, p_act.act_id))
		having count(*) > 0);
end
$$;

create or replace function autopost.came_with_its_post(p_act autopost.post_acts) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a removal came with its post (remove_at) and not by a request.
select p_act.kind = 'delete' and p_act.operator = 'the post' and p_act.reason = 'remove_at'
$$;

create or replace function autopost.was_deleted(p_workspace_id text, p_delivery_id uuid) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a post change deleted the sent post.
-- Reads:   post_acts.
begin
	return exists (
		select 1 from autopost.post_acts a
		where a.workspace_id = p_workspace_id and a.delivery_id = p_delivery_id and a.kind = 'delete'
			and a.status = 'done');
end
$$;

create or replace function autopost.act_obstacle_until(p_channel autopost.channels, p_limit autopost.platform_limits,
	p_now timestamptz) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: when to check a post change again whose channel or rate group pauses; null if nothing
--          blocks it. At most half a minute, because an operator may end the pause. Posting windows
--          and the breaker do not block post changes: a wrong post can be deleted at night.
select least(p_now + interval '30 seconds', case when not p_channel.enabled
	then 'infinity'::timestamptz else h.until end)
from (select greatest(p_channel.paused_until, p_channel.cooldown_until, p_channel.credential_until, p_channel.held_until,
	p_limit.cooldown_until) as until) h
where not p_channel.enabled or h.until > p_now
$$;

create or replace function autopost.take_act(p_workspace_id text, p_act_id uuid, p_run_id text) returns text
language plpgsql
as $$
-- Purpose: claims a due post change if it can start within two slot horizons. Deliveries reserve
--          one horizon ahead, so a change gets slots in a busy group too. A claim whose lease ended
--          is recorded as a failed call with an unknown outcome, unless it never started. Never
--          waits.
-- Returns: "taken"; "later" if it must wait; "full" if the rate group has no slot for any change.
-- Locks:   platform_limits and channels if limited, deliveries, post_acts, in this order, all with
--          SKIP LOCKED.
-- Writes:  post_acts, platform_limits, channels, events (act_retry_scheduled, act_failed,
--          act_void).
declare
	v_act autopost.post_acts;
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
	v_delivery autopost.deliveries;
	v_now timestamptz;
	v_slot timestamptz;
	v_token text := gen_random_uuid();
	v_later timestamptz;
	v_cost int;
begin
	select a.* into v_act from autopost.post_acts a where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = v_act.channel_id;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group;
	if v_limit.rate_rps > 0 then
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = v_channel.platform
			and l.rate_group = v_channel.rate_group
		for no key update of l skip locked;
		if not found or v_limit.next_allowed_at > autopost.now_ts() + 2 * autopost.slot_horizon() then
			return 'full';
		end if;
	end if;
	if v_channel.effective_rps > 0 then
		select c.* into v_channel from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = v_act.channel_id
		for no key update of c skip locked;
		if not found then
			return 'later';
		end if;
	end if;
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = v_act.delivery_id
	for no key update of d skip locked;
	if not found then
		return 'later';
	end if;
	select a.* into v_act from autopost.post_acts a
	where a.workspace_id = p_workspace_id and a.act_id = p_act_id
	for no key update of a skip locked;
	v_now := autopost.now_ts();
	if not found or v_act.status not in ('queued', 'sending', 'retry') or v_act.next_at > v_now then
		return 'later';
	end if;
	if v_act.status = 'sending' and v_act.attempt >= autopost.act_attempts(p_workspace_id,
		v_channel.platform, 'unknown_outcome') then
		perform autopost.end_act(v_act, 'failed', autopost.normalised_error('{"category": "TRANSIENT", "scope": "delivery", "code": "unknown_outcome", "known": false,
			"message": "no call of this act brought an answer: look at the platform, and ask for it again"}'), null);
		return 'later';
	elsif v_act.status = 'sending' then
		perform autopost.emit_act(v_act, 'act_retry_scheduled', 'error',
			jsonb_build_object('category', 'TRANSIENT', 'scope', 'delivery', 'code', 'lease_expired',
			'known', v_act.started_at is null, 'message', 'the lease ran out before an outcome was committed'),
				jsonb_build_object('next_at', v_now));
	end if;
	if autopost.was_deleted(p_workspace_id, v_act.delivery_id) then
		perform autopost.void_act(v_act, 'the post was deleted', null);
		return 'later';
	end if;
	v_slot := greatest(v_now, case when v_channel.effective_rps > 0 then v_channel.next_allowed_at end, case
		when v_limit.rate_rps > 0 then v_limit.next_allowed_at end);
	v_later := coalesce(autopost.act_waits_until(v_act, v_delivery, v_now),
		autopost.act_obstacle_until(v_channel, v_limit, v_now),
		case when v_slot > v_now + 2 * autopost.slot_horizon() then v_slot - autopost.slot_horizon() end);
	if v_later is not null then
		update autopost.post_acts a
		set next_at = v_later, updated_at = v_now,
			status = case when a.status = 'sending'
				then 'retry' else a.status end, claim_token = null, claimed_by = null, send_at = null
		where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
		return 'later';
	end if;
	v_cost := autopost.act_cost(v_act, v_delivery);
	update autopost.channels c
	set next_allowed_at = v_slot + autopost.slot_step(v_channel.effective_rps, v_cost)
	where c.workspace_id = p_workspace_id and c.channel_id = v_act.channel_id and v_channel.effective_rps > 0;
	update autopost.platform_limits l
	set next_allowed_at = v_slot + autopost.slot_step(v_limit.rate_rps, v_cost)
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group
		and v_limit.rate_rps > 0;
	update autopost.post_acts a
	set status = 'sending', attempt = a.attempt + 1, claim_token = v_token, claimed_by = p_run_id,
		updated_at = v_now, started_at = null,
		next_at = v_now + autopost.setting_interval('sending_lease_seconds'),
		send_at = case when v_channel.effective_rps > 0 or v_limit.rate_rps > 0 then v_slot end
	where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
	return 'taken';
end
$$;

create or replace function autopost.act_lanes(p_workspace_id text) returns table (lane text, next_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the lanes with open post changes and the next time of each. One index probe per lane.
-- Reads:   post_acts.
begin
	return query
	with recursive l as (
		(select a.lane, a.next_at from autopost.post_acts a
		where a.workspace_id = p_workspace_id and a.status in ('queued', 'sending', 'retry')
		order by a.lane, a.next_at limit 1)
		union all
		select n.lane, n.next_at
		from l, lateral (
			select a.lane, a.next_at from autopost.post_acts a
			where a.workspace_id = p_workspace_id and a.status in ('queued', 'sending', 'retry') and a.lane > l.lane
			order by a.lane, a.next_at limit 1) n
	)
	select l.lane, l.next_at from l;
end
$$;

create or replace function autopost.release_lost_acts(p_workspace_id text, p_run_id text, p_known text[]) returns int
language plpgsql
as $$
-- Purpose: releases the unstarted claims of a run that are not in p_known. Their attempts do not
--          count. Never waits.
-- Returns: their number, at most 1000.
-- Locks:   post_acts with SKIP LOCKED.
-- Writes:  post_acts.
declare
	v_now timestamptz := autopost.now_ts();
	v_released int;
begin
	with lost as (
		select a.act_id from autopost.act_lanes(p_workspace_id) l
		join autopost.post_acts a on a.workspace_id = p_workspace_id and a.lane = l.lane
		where a.status = 'sending' and a.next_at <= v_now + autopost.setting_interval('sending_lease_seconds')
		and a.claimed_by = p_run_id and a.started_at is null and a.claim_token <> all (p_known)
		limit 1000
		for no key update of a skip locked
	), released as (
		update autopost.post_acts a
		set status = 'retry', attempt = a.attempt - 1, next_at = v_now, claim_token = null, claimed_by = null,
			send_at = null, updated_at = v_now
		from lost
		where a.workspace_id = p_workspace_id and a.act_id = lost.act_id
		returning a.act_id
	)
	select count(*) into v_released from released;
	return v_released;
end
$$;

create or replace function autopost.act_attempts(p_workspace_id text, p_platform text, p_code text)
	returns int
language plpgsql stable
as $$
-- Purpose: how many calls a post change may start: as a delivery without granted attempts.
begin
	return (select coalesce(r.max_attempts, autopost.setting('max_attempts')::int)
		from autopost.retry_policy(p_workspace_id, p_platform, p_code) r);
end
$$;

create or replace function autopost.emit_act(p_act autopost.post_acts, p_action text, p_result text, p_error jsonb,
	p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: writes the event of a post change for its delivery. meta.call is the attempt of the
--          change.
-- Writes:  events.
declare
	v_delivery autopost.deliveries;
begin
	select d.* into v_delivery from autopost.deliveries d where d.workspace_id = p_act.workspace_id
		and d.delivery_id = p_act.delivery_id;
	perform autopost.emit_event(p_act.workspace_id, p_action, p_result, v_delivery, p_error,
		jsonb_build_object('act_id', p_act.act_id, 'kind', p_act.kind,
			'call', nullif(p_act.attempt, 0)) || coalesce(p_meta, '{}'));
end
$$;

create or replace function autopost.end_act(p_act autopost.post_acts, p_status text, p_error jsonb,
	p_next_at timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: ends the current call of a locked post change and wakes changes that wait for it. If the
--          post is gone, its other changes become void.
-- Returns: the answer of the commit.
-- Writes:  post_acts, events.
declare
	v_now timestamptz := autopost.now_ts();
	v_answer jsonb := jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', p_status,
		'attempt', p_act.attempt, 'next_at', p_next_at, 'payload_ref', p_error -> 'payload_ref'));
	v_other autopost.post_acts;
begin
	update autopost.post_acts a
	set status = p_status, last_error = coalesce(p_error - 'payload_ref', a.last_error), next_at = coalesce(p_next_at, a.next_at),
		settled = jsonb_build_object('token', p_act.claim_token, 'answer', v_answer),
		claim_token = null, claimed_by = null, send_at = null, updated_at = v_now,
		finished_at = case when p_status <> 'retry' then v_now end
	where a.workspace_id = p_act.workspace_id and a.act_id = p_act.act_id;
	perform autopost.emit_act(p_act, case p_status when 'done' then 'act_done' when 'retry'
		then 'act_retry_scheduled' else 'act_failed' end,
		case p_status when 'done' then 'ok' else 'error' end, p_error, jsonb_build_object('next_at', p_next_at));
	for v_other in
		select o.* from autopost.post_acts o
		where o.workspace_id = p_act.workspace_id and o.delivery_id = p_act.delivery_id and o.act_id <> p_act.act_id
			and o.status in ('queued', 'retry')
		and (p_status = 'done' and p_act.kind = 'delete' or p_status <> 'retry' and o.due_at <= v_now)
		order by o.act_id
		for no key update of o
	loop
		if p_status = 'done' and p_act.kind = 'delete' then
			perform autopost.void_act(v_other, 'the post was deleted', null);
		else
			update autopost.post_acts o set next_at = least(o.next_at, v_now)
			where o.workspace_id = v_other.workspace_id and o.act_id = v_other.act_id and o.status = 'queued';
		end if;
	end loop;
	return v_answer;
end
$$;

create or replace function autopost.void_act(p_act autopost.post_acts, p_why text, p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: cancels a locked post change that is not in flight.
-- Writes:  post_acts, events (act_void).
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.post_acts a
	set status = 'void', claim_token = null, claimed_by = null, send_at = null, finished_at = v_now,
		updated_at = v_now
	where a.workspace_id = p_act.workspace_id and a.act_id = p_act.act_id;
	perform autopost.emit_act(p_act, 'act_void', 'ok', null,
		jsonb_build_object('why', p_why) || coalesce(p_meta, '{}'));
end
$$;

create or replace function autopost.plan_removals(p_workspace_id text, p_first uuid, p_last uuid,
	p_remove_at timestamptz) returns void
language plpgsql
as $$
-- Purpose: adds the removals of new deliveries, given by the range of their ids, on platforms that
--          can delete posts. They wait until their delivery is sent.
-- Reads:   deliveries, channels, platforms.
-- Writes:  post_acts.
declare
	v_now timestamptz := autopost.now_ts();
begin
	insert into autopost.post_acts (workspace_id, act_id, delivery_id, message_id, channel_id, lane, kind, due_at,
		next_at, operator, reason, created_at, updated_at)
	select p_workspace_id, autopost.new_id(), d.delivery_id, d.message_id, d.channel_id,
		c.platform || '/' || c.rate_group, 'delete', p_remove_at, greatest(p_remove_at, v_now), 'the post', 'remove_at',
		v_now, v_now
	from autopost.deliveries d
	cross join lateral (select c.platform, c.rate_group from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = d.channel_id limit 1) c
	join autopost.platforms p on p.platform = c.platform and 'delete' = any (p.acts)
	where d.workspace_id = p_workspace_id and d.delivery_id between p_first and p_last and d.status = 'queued';
end
$$;
