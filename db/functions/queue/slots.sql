create or replace function autopost.next_step_cost(p_render_meta jsonb) returns int
language sql immutable parallel safe
as $$
-- Purpose: the slots of the first unacknowledged of several steps.
select coalesce((
	select greatest(1, coalesce(jsonb_array_length(s.value -> 'items'), 0))
	from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s
	where not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)
	order by s.ordinality
	limit 1), 1)
$$;

create or replace function autopost.step_cost(p_render_meta jsonb) returns int
language sql immutable parallel safe
as $$
-- Purpose: the slots of the next unacknowledged step: its items, at least one. A single step needs
--          no query.
select case
	when p_render_meta ? 'series_progress' or jsonb_array_length(p_render_meta -> 'steps') > 1
		then autopost.next_step_cost(p_render_meta)
	else greatest(1, coalesce(jsonb_array_length(p_render_meta -> 'steps' -> 0 -> 'items'), 0)) end
$$;

create or replace function autopost.slot_step(p_rate_rps numeric, p_cost int) returns interval
language sql immutable parallel safe
as $$
-- Purpose: how far a call of this cost moves next_allowed_at at this rate; null without a limit.
select case when p_rate_rps > 0 then make_interval(secs => (p_cost / p_rate_rps)::float8) end
$$;

create or replace function autopost.slot_micros(p_rate_rps numeric) returns bigint
language sql immutable parallel safe
as $$
-- Purpose: how far a call of cost 1 moves next_allowed_at, in microseconds; 0 without a limit; at
--          most ten years.
select case when p_rate_rps > 0 then least(315360000000000, ceil(1000000 / p_rate_rps))::bigint else 0 end
$$;

create or replace function autopost.slot_offset(p_next_allowed_at timestamptz, p_now timestamptz) returns bigint
language sql immutable parallel safe
as $$
-- Purpose: microseconds from p_now to the next free slot; 0 if it is free now.
select case when p_next_allowed_at > p_now then least(315360000000000,
	extract(epoch from p_next_allowed_at - p_now) * 1000000)::bigint else 0 end
$$;

create or replace function autopost.space_slots(
	p_places int[], p_costs int[], p_next bigint[], p_steps bigint[], p_group_next bigint, p_group_step bigint,
		p_latest bigint, p_now timestamptz,
	out o_slots bigint[], out o_next bigint[], out o_group_next bigint, out o_send_at timestamptz[]
)
language plpgsql immutable parallel safe
as $$
-- Purpose: assigns slots to calls in order. All times are microseconds from p_now. p_places:
--          for each call, the index of its channel in p_next (next free slot) and p_steps
--          (slot_micros); likewise the group. A call whose slot would be after p_latest gets none
--          and moves nothing. o_send_at: the slots as instants, null for a call without a limit.
declare
	v_place int;
	v_at bigint;
begin
	o_next := p_next;
	o_group_next := p_group_next;
	o_slots := '{}';
	o_send_at := '{}';
	for v_call in 1..coalesce(cardinality(p_places), 0) loop
		v_place := p_places[v_call];
		v_at := greatest(o_next[v_place], o_group_next);
		if v_at > p_latest then
			o_slots := array_append(o_slots, null);
			o_send_at := array_append(o_send_at, null);
			continue;
		end if;
		o_slots := array_append(o_slots, v_at);
		o_send_at := array_append(o_send_at, case when p_group_step > 0 or p_steps[v_place] > 0
			then p_now + v_at * interval '1 microsecond' end);
		if p_steps[v_place] > 0 then
			o_next[v_place] := v_at + p_costs[v_call] * p_steps[v_place];
		end if;
		if p_group_step > 0 then
			o_group_next := v_at + p_costs[v_call] * p_group_step;
		end if;
	end loop;
end
$$;

create or replace function autopost.slots_in_window(
	p_workspace_id text, p_slots bigint[], p_places int[], p_channels text[], p_closing boolean[], p_now timestamptz
) returns bigint[]
language plpgsql stable
as $$
-- Purpose: removes the slots that are outside the posting window of their channel, if it closes
--          before the last slot.
-- Reads:   channels.
begin
	return (
		select array_agg(case when s.slot > 0 and p_closing[s.place] and (
				select autopost.opens_at(c.window_mode, c.timezone, c.posting_window, a.slot_at) > a.slot_at
					from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = p_channels[s.place])
			then null else s.slot end order by s.n)
		from unnest(p_slots, p_places) with ordinality s (slot, place, n)
		cross join lateral (select p_now + s.slot * interval '1 microsecond' as slot_at) a);
end
$$;

create or replace function autopost.move_slots(p_workspace_id text, p_channels text[], p_steps bigint[],
	p_next bigint[], p_now timestamptz) returns void
language plpgsql
as $$
-- Purpose: sets next_allowed_at of limited, locked channels to their next free slots in the future.
--          A past slot does not limit anything, and an unchanged row needs no new version.
-- Writes:  channels.
declare
	v_passed bigint := extract(epoch from autopost.now_ts() - p_now) * 1000000;
	v_next jsonb;
	v_moved text[];
begin
	select jsonb_object_agg(u.channel_id, p_now + u.next * interval '1 microsecond'),
		array_agg(u.channel_id) into v_next, v_moved
	from unnest(p_channels, p_steps, p_next) u (channel_id, step, next)
	where u.step > 0 and u.next > v_passed;
	if v_moved is null then
		return;
	end if;
	update autopost.channels c
	set next_allowed_at = autopost.instant_of(v_next ->> c.channel_id)
	where c.workspace_id = p_workspace_id
	and c.channel_id = any (v_moved)
	and c.next_allowed_at is distinct from autopost.instant_of(v_next ->> c.channel_id);
end
$$;

create or replace function autopost.slot_end(p_slot timestamptz, p_cost int, p_rate_rps numeric) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: the next free slot after a call of this cost at this slot and rate.
select p_slot + p_cost * autopost.slot_micros(p_rate_rps) * interval '1 microsecond'
$$;

create or replace function autopost.retake_slots(p_workspace_id text, p_ids uuid[], p_now timestamptz,
	p_unspent boolean, p_latest bigint) returns jsonb
language plpgsql
as $$
-- Purpose: new slots for claimed deliveries that missed theirs, in this order, at most p_latest
--          microseconds from p_now. p_unspent: none of their calls started; then the last slot of a
--          channel or group is given back if it was one of theirs, because a slow caller would
--          otherwise never start. Groups and channels are locked.
-- Returns: {delivery_id: slot}; null if nothing limits it; without deliveries for which no slot is
--          free.
-- Reads:   deliveries, channels.
-- Writes:  channels, platform_limits.
declare
	v_late record;
	v_limit autopost.platform_limits;
	v_bound boolean; -- true: the group's next slot limits
	v_next bigint[];
	v_steps bigint[];
	v_spaced record;
	v_slots jsonb := '{}';
begin
	for v_late in
		select r.platform, r.rate_group, array_agg(distinct r.channel_id) as channels,
			array_agg(r.id order by r.n) as ids, array_agg(r.place order by r.n) as places,
				array_agg(r.cost order by r.n) as costs,
			array_agg(r.send_at order by r.n) as slots,
				array_agg(r.channel_id) filter (where p_unspent and r.channels_last) as unspent
		from (
			select c.platform, c.rate_group, c.channel_id, u.id, u.n, d.cost, d.send_at,
				autopost.slot_end(d.send_at, d.cost, c.effective_rps) = c.next_allowed_at as channels_last,
				dense_rank() over (partition by c.platform, c.rate_group order by c.channel_id)::int as place
			from unnest(p_ids) with ordinality u (id, n)
			cross join lateral (
				select d.channel_id, d.send_at, autopost.step_cost(d.render_meta) as cost from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
			cross join lateral (
				select c.channel_id, c.platform, c.rate_group, c.effective_rps, c.next_allowed_at from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c) r
		group by r.platform, r.rate_group
	loop
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = v_late.platform and l.rate_group = v_late.rate_group;
		select array_agg(case when c.effective_rps > 0 and not c.channel_id = any (coalesce(v_late.unspent, '{}'))
			then autopost.slot_offset(c.next_allowed_at, p_now) else 0 end order by c.channel_id),
			array_agg(autopost.slot_micros(c.effective_rps) order by c.channel_id)
		into v_next, v_steps
		from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_late.channels);
		v_bound := v_limit.rate_rps > 0 and not (p_unspent and exists (
			select 1 from unnest(v_late.slots, v_late.costs) u (slot, cost)
				where autopost.slot_end(u.slot, u.cost, v_limit.rate_rps) = v_limit.next_allowed_at));
		v_spaced := autopost.space_slots(v_late.places, v_late.costs, v_next, v_steps,
			case when v_bound then autopost.slot_offset(v_limit.next_allowed_at, p_now) else 0 end,
				autopost.slot_micros(v_limit.rate_rps), p_latest, p_now);
		perform autopost.move_slots(p_workspace_id, v_late.channels, v_steps, v_spaced.o_next, p_now);
		update autopost.platform_limits l
		set next_allowed_at = p_now + v_spaced.o_group_next * interval '1 microsecond'
		where l.workspace_id = p_workspace_id and l.platform = v_late.platform and l.rate_group = v_late.rate_group
			and l.rate_rps > 0;
		v_slots := v_slots || (
			select coalesce(jsonb_object_agg(s.id, case when v_limit.rate_rps > 0 or v_steps[s.place] > 0
				then p_now + s.slot * interval '1 microsecond' end), '{}')
			from unnest(v_late.ids, v_spaced.o_slots, v_late.places) s (id, slot, place)
			where s.slot is not null);
	end loop;
	return v_slots;
end
$$;

create or replace function autopost.passed_slots(p_workspace_id text, p_ids uuid[], p_now timestamptz,
	p_most interval) returns jsonb
language plpgsql
as $$
-- Purpose: slots that end at p_now for late deliveries whose own slots limited nothing: spaced by
--          the widest step in each rate group they take at most p_most together, and no later slot
--          of their channels and groups is taken. Groups and channels are locked.
-- Returns: {delivery_id: slot, null if it has no limit any more}; null if any of these slots limits.
-- Reads:   deliveries.
-- Writes:  channels, platform_limits.
declare
	v_slots jsonb;
	v_channels text[]; -- those with a rate
	v_groups text[]; -- platform/rate_group
begin
	select case when bool_and(s.took <= p_most and coalesce(s.taken_until <= p_now - s.took, true))
		then jsonb_object_agg(s.id, case when s.limited then p_now - s.took + s.before * s.step end) end,
		array_agg(distinct s.channel_id) filter (where s.own > 0),
		array_agg(distinct s.platform || '/' || s.rate_group) filter (where s.shared)
	into v_slots, v_channels, v_groups
	from (
		select r.id, r.channel_id, r.platform, r.rate_group, r.own, r.before, g.step, g.total * g.step as took,
			greatest(r.taken_until, g.taken_until) as taken_until, g.shared, r.own > 0 or g.shared as limited
		from (
			select c.platform, c.rate_group, c.channel_id, u.id, c.micros as own,
				sum(d.cost) over w - d.cost as before, sum(d.cost) over p as total, max(c.micros) over p as micros,
				max(c.next_allowed_at) over p as taken_until
			from unnest(p_ids) with ordinality u (id, n)
			cross join lateral (
				select d.channel_id, autopost.step_cost(d.render_meta) as cost from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
			cross join lateral (
				select c.channel_id, c.platform, c.rate_group, autopost.slot_micros(c.effective_rps) as micros,
					case when c.effective_rps > 0 then c.next_allowed_at end as next_allowed_at
				from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
			window p as (partition by c.platform, c.rate_group), w as (p order by u.n)) r
		left join lateral (
			select autopost.slot_micros(l.rate_rps) as micros, case when l.rate_rps > 0 then l.next_allowed_at end as taken_until
			from autopost.platform_limits l
			where l.workspace_id = p_workspace_id and l.platform = r.platform and l.rate_group = r.rate_group
			limit 1) l on true
		cross join lateral (
			select r.total, l.taken_until, coalesce(l.micros > 0, false) as shared,
				greatest(r.micros, l.micros) * interval '1 microsecond' as step) g) s;
	if v_slots is not null then -- other late calls must not take the same slots
		update autopost.channels c
		set next_allowed_at = p_now
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_channels);
		update autopost.platform_limits l
		set next_allowed_at = p_now
		where l.workspace_id = p_workspace_id and l.platform || '/' || l.rate_group = any (v_groups);
	end if;
	return v_slots;
end
$$;

create or replace function autopost.reserve_slot(p_workspace_id text, p_channel_id text, p_cost int) returns timestamptz
language plpgsql
as $$
-- Purpose: reserves the next slot of a channel and its rate group for a running call, however far
--          ahead; null if nothing limits it.
-- Locks:   platform_limits, channels, in this order.
-- Writes:  platform_limits, channels.
declare
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
	v_now timestamptz;
	v_slot timestamptz;
begin
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group
	for no key update of l;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id
	for no key update of c;
	v_now := autopost.now_ts();
	if coalesce(v_channel.effective_rps, 0) = 0 and coalesce(v_limit.rate_rps, 0) = 0 then
		return null;
	end if;
	v_slot := greatest(v_now,
		case when v_channel.effective_rps > 0 then v_channel.next_allowed_at end,
		case when v_limit.rate_rps > 0 then v_limit.next_allowed_at end);
	update autopost.channels c
	set next_allowed_at = v_slot + autopost.slot_step(v_channel.effective_rps, p_cost)
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id and v_channel.effective_rps > 0;
	update autopost.platform_limits l
	set next_allowed_at = v_slot + autopost.slot_step(v_limit.rate_rps, p_cost)
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group
		and v_limit.rate_rps > 0;
	return v_slot;
end
$$;

create or replace function autopost.call_deadline(p_lease_until timestamptz, p_claimed_at timestamptz,
	p_margin interval) returns timestamptz
language plpgsql immutable parallel safe
as $$
-- Purpose: the time by which a call must end: p_margin before its lease ends, or proportionally
--          less for a lease below a minute. PostgreSQL would plan it at each call in SQL.
begin
	return p_lease_until - p_margin * least(1, extract(epoch from p_lease_until - p_claimed_at) / 60);
end
$$;
