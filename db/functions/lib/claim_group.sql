create or replace function autopost.claim_group(
	p_workspace_id text, p_run_id text, p_limit int, p_platform text, p_rate_group text
) returns uuid[]
language plpgsql
as $$
-- Claims up to p_limit due deliveries of one rate group: its own gate, then the gates of its channels in the order in which they
-- became ready, then of each channel as many rows as it may have in flight and has slots for.
-- Waits for nothing: every lock is SKIP LOCKED, what is locked is somebody else's work. Returns the ids claimed.
-- A join by key is written as a lateral probe with a limit: a workspace that the last ANALYZE did not know is estimated at one row,
-- and a plain join then reads all of its channels for each row.
-- Locks: platform_limits if limited, channel_gates, channels if limited, deliveries. Writes: all four.
declare
	v_limit autopost.platform_limits;
	v_horizon timestamptz;
	v_now timestamptz;
	v_visited text[];
	v_inflight int[];
	v_open text[]; -- of those visited, what may send now
	v_rooms int[]; -- how many more of each may be in flight
	v_rates numeric[];
	v_windowed text[]; -- of those open, whose slots must lie inside a window
	v_row record;
	v_slot timestamptz;
	v_next jsonb := '{}'; -- channel -> its next free slot
	v_taken jsonb; -- channel -> how many of its rows were claimed
	v_ids uuid[] := '{}';
	v_slots timestamptz[] := '{}';
	v_salt text := gen_random_uuid()::text;
begin
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
	if v_limit.rate_rps > 0 then
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
		for no key update of l skip locked;
		if not found then
			return v_ids;
		end if;
	end if;
	v_now := autopost.now_ts();
	v_horizon := v_now + autopost.setting_interval('slot_horizon_ms');
	if v_limit.cooldown_until > v_now or (v_limit.rate_rps > 0 and v_limit.next_allowed_at >= v_horizon) then
		return v_ids;
	end if;

	select array_agg(v.channel_id), array_agg(v.inflight) into v_visited, v_inflight
	from (
		select g.channel_id, g.inflight from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.platform = p_platform and g.rate_group = p_rate_group
		and g.ready_at <= v_now and g.ready_at < 'infinity'
		order by g.ready_at
		limit p_limit
		for no key update of g skip locked) v;
	if v_visited is null then
		return v_ids;
	end if;
	select array_agg(o.channel_id), array_agg(o.max_parallel - i.inflight), array_agg(coalesce(o.rate_rps, 0)),
		coalesce(jsonb_object_agg(o.channel_id, greatest(v_now, o.next_allowed_at)) filter (where o.rate_rps > 0), '{}'),
		array_agg(o.channel_id) filter (where o.window_mode = 'windowed')
	into v_open, v_rooms, v_rates, v_next, v_windowed
	from (
		select l.channel_id, l.max_parallel, l.rate_rps, l.next_allowed_at, l.window_mode
		from (
			select c.* from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = any (v_visited)
			and c.rate_rps > 0 and coalesce(c.next_allowed_at, v_now) < v_horizon
			for no key update of c skip locked) l
		where l.enabled and coalesce(greatest(l.paused_until, l.cooldown_until), v_now) <= v_now
		and autopost.opens_at(l.window_mode, l.timezone, l.posting_window, v_now) = v_now
		union all
		select c.channel_id, c.max_parallel, c.rate_rps, c.next_allowed_at, c.window_mode from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_visited)
		and coalesce(c.rate_rps, 0) = 0
		and c.enabled and coalesce(greatest(c.paused_until, c.cooldown_until), v_now) <= v_now
		and autopost.opens_at(c.window_mode, c.timezone, c.posting_window, v_now) = v_now
	) o
	join unnest(v_visited, v_inflight) i (channel_id, inflight) on i.channel_id = o.channel_id;

	-- Turn by turn: the first row of every channel, then the second of those that may have two, …
	for v_row in
		select u.channel_id, u.rate_rps, d.delivery_id, d.cost
		from unnest(v_open, v_rooms, v_rates) u (channel_id, room, rate_rps)
		cross join lateral (
			select d.delivery_id, d.due_at, autopost.step_cost(d.render_meta) as cost
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
			and d.status in ('queued', 'retry') and d.due_at <= v_now
			order by d.due_at, d.delivery_id
			limit greatest(0, least(p_limit, u.room))
			for no key update of d skip locked) d
		order by row_number() over (partition by u.channel_id order by d.due_at, d.delivery_id), array_position(v_visited, u.channel_id)
		limit p_limit
	loop
		v_slot := greatest((v_next ->> v_row.channel_id)::timestamptz, case when v_limit.rate_rps > 0 then greatest(v_now, v_limit.next_allowed_at) end);
		continue when v_slot >= v_horizon;
		continue when v_slot > v_now and v_row.channel_id = any (v_windowed) and (
			select autopost.opens_at(c.window_mode, c.timezone, c.posting_window, v_slot) > v_slot from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = v_row.channel_id);
		if v_row.rate_rps > 0 then
			v_next := v_next || jsonb_build_object(v_row.channel_id, v_slot + autopost.slot_step(v_row.rate_rps, v_row.cost));
		end if;
		v_limit.next_allowed_at := coalesce(v_slot + autopost.slot_step(v_limit.rate_rps, v_row.cost), v_limit.next_allowed_at);
		v_ids := v_ids || v_row.delivery_id;
		v_slots := v_slots || v_slot;
	end loop;

	select coalesce(jsonb_object_agg(t.channel_id, t.n), '{}') into v_taken
	from (
		select d.channel_id, count(*) as n from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids)
		group by d.channel_id) t;
	update autopost.deliveries d
	set status = 'sending', attempt = d.attempt + 1, claimed_at = v_now, claimed_by = p_run_id, claim_token = md5(v_salt || d.delivery_id),
		sending_started_at = v_now, sending_lease_until = v_now + autopost.setting_interval('sending_lease_seconds'),
		send_at = v_slots[array_position(v_ids, d.delivery_id)], updated_at = v_now
	where d.workspace_id = p_workspace_id
	and d.delivery_id = any (v_ids);
	update autopost.channels c
	set next_allowed_at = (v_next ->> c.channel_id)::timestamptz
	where c.workspace_id = p_workspace_id
	and c.channel_id = any (v_open) and c.rate_rps > 0
	and (v_next ->> c.channel_id)::timestamptz is distinct from c.next_allowed_at;
	update autopost.platform_limits l
	set next_allowed_at = v_limit.next_allowed_at
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
	and v_limit.rate_rps > 0 and v_ids <> '{}';
	perform autopost.move_visited_gates(p_workspace_id, v_visited, v_taken, v_now,
		case when v_limit.rate_rps > 0 then v_limit.next_allowed_at end);
	return v_ids;
end
$$;

create or replace function autopost.move_visited_gates(
	p_workspace_id text, p_visited text[], p_taken jsonb, p_now timestamptz, p_group_slot timestamptz
) returns void
language plpgsql
as $$
-- Moves the gates that a claim holds and has visited: in flight by what was taken, and to when the channel is worth the next
-- visit (p_taken: channel -> rows claimed; p_group_slot: the group's next slot, if it limits). Full or disabled: never (the commit, the
-- row edit opens it). Paused, cooling down, out of slots: then. Else what is due next. None of it before the posting window opens.
-- Reads: channels, deliveries. Writes: channel_gates.
declare
	v_ready timestamptz[];
	v_taken int[];
	v_ahead interval := autopost.setting_interval('slot_horizon_ms');
begin
	select array_agg(case
			when not c.enabled or g.inflight + t.taken >= c.max_parallel then 'infinity'::timestamptz
			else autopost.opens_at(c.window_mode, c.timezone, c.posting_window,
				case when coalesce(greatest(c.paused_until, c.cooldown_until), p_now) > p_now then greatest(c.paused_until, c.cooldown_until)
					else greatest(p_now, autopost.next_due(p_workspace_id, u.channel_id), case when c.rate_rps > 0 then c.next_allowed_at - v_ahead end) end,
				greatest(case when c.rate_rps > 0 then c.next_allowed_at end, p_group_slot)) end order by u.n),
		array_agg(t.taken order by u.n)
	into v_ready, v_taken
	from unnest(p_visited) with ordinality u (channel_id, n)
	cross join lateral (select c.* from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c
	cross join lateral (select g.* from autopost.channel_gates g where g.workspace_id = p_workspace_id and g.channel_id = u.channel_id limit 1) g
	cross join lateral (select coalesce((p_taken ->> u.channel_id)::int, 0) as taken) t;
	update autopost.channel_gates g
	set inflight = g.inflight + v_taken[array_position(p_visited, g.channel_id)],
		ready_at = v_ready[array_position(p_visited, g.channel_id)]
	where g.workspace_id = p_workspace_id
	and g.channel_id = any (p_visited);
end
$$;
