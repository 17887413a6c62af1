create or replace function autopost.claim_from_group(
	p_workspace_id text, p_limit int, p_platform text, p_rate_group text, p_before int,
	p_began timestamptz, inout io_hours text[],
	out o_ids uuid[], out o_places int[], out o_slots timestamptz[], out o_visited text[], out o_inflight int[],
	out o_posts text[], out o_unlisted text[], out o_taken int[],
	out o_next timestamptz, out o_windows jsonb, out o_quotas text[], out o_denied int, out o_unpaid text[],
	out o_calm boolean
)
language plpgsql
as $$
-- Purpose: picks and locks up to p_limit due deliveries of one rate group. It locks the group, then
--          the gates of its channels in ready order. Each channel gives at most as many rows as it
--          has free capacity and slots. Rows are taken in turns: the first row of every channel,
--          then the second, and so on. Rows of a channel go by greatest(not_before, scheduled_for),
--          a retry too. They are the first of the due retries by this key, and the queued ones among
--          the first due rows: a row that is due earlier than a queued one also has an earlier key.
--          It never waits: all locks use SKIP LOCKED. A join by key is written as a lateral probe
--          with a limit, because a plain join may read all channels of a workspace for each row.
--          p_before: how many channels the claim visited before. io_hours: posting windows (hours_key)
--          found open until two slot_horizon after p_began; the function adds to them.
-- Returns: o_ids; o_places, p_before and the index in o_visited of the channel of each; o_slots, the
--          slot of each or null; o_visited, the channels of all visited gates; o_inflight, o_posts, the
--          count in flight and the newest post of each; o_unlisted, those that are not in
--          channels_in_flight; o_taken, the rows picked from each; o_next, the next slot of a limited
--          group; o_windows (windows_of); o_quotas, the subjects with quotas, which the caller spends
--          after the claim; o_denied, the posts of the first row that the group's quota denies;
--          o_unpaid, the channels with no money for their next row; o_calm, whether calls may start at
--          once: the group has neither a cooldown nor an open breaker.
-- Locks:   platform_limits if limited or its breaker is open, channel_gates, channels if limited,
--          quotas and budgets if there are any, deliveries.
-- Writes:  platform_limits, channels, charges.
declare
	v_limit autopost.platform_limits;
	v_now timestamptz;
	v_horizon bigint := extract(epoch from autopost.slot_horizon()) * 1000000;
	v_taken bigint; -- the group's slots are taken for this time ahead, in microseconds
	v_gate record;
	v_share int := greatest(1, p_limit / 100); -- rows that one channel gives while others wait
	v_gates int := p_limit;
	v_until timestamptz := p_began + 2 * autopost.slot_horizon();
	v_known text[] := '{}'; -- io_hours while that holds
	v_hours text[]; -- posting windows that are not in v_known
	v_key text;
	v_wanted int;
	v_open text[]; -- visited channels that may send now
	v_at int[]; -- index of each in o_visited
	v_rooms int[]; -- free capacity of each
	v_next bigint[]; -- next allowed call of each, in microseconds from now
	v_passed bigint;
	v_steps bigint[];
	v_closing boolean[]; -- true: the window closes soon, so its slots must be checked
	v_places int[]; -- index in v_open of the channel of each row
	v_place int;
	v_costs int[];
	v_spaced record;
	v_limited boolean;
	v_has_quotas boolean;
	v_has_budgets boolean;
	v_turns int;
	v_more boolean;
begin
	o_ids := '{}';
	o_places := '{}';
	o_slots := '{}';
	o_visited := '{}';
	o_inflight := '{}';
	o_posts := '{}';
	o_unlisted := '{}';
	o_taken := '{}';
	o_windows := '{}';
	o_unpaid := '{}';
	o_calm := false;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
		and (l.rate_rps > 0 or l.breaker_opened_at is not null)
	for no key update of l skip locked;
	if not found then
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
		if v_limit.rate_rps > 0 or v_limit.breaker_opened_at is not null then -- another transaction holds it
			return;
		end if;
	end if;
	v_now := autopost.now_ts();
	v_taken := case when v_limit.rate_rps > 0 then autopost.slot_offset(v_limit.next_allowed_at, v_now) else 0 end;
	if greatest(v_limit.cooldown_until, v_limit.quota_until) > v_now or v_taken >= v_horizon then
		return;
	end if;
	if v_taken > 0 then -- lock no more rows and gates than there are free slots
		p_limit := least(p_limit, 1 + (v_horizon - 1 - v_taken) / autopost.slot_micros(v_limit.rate_rps));
	end if;
	o_calm := v_limit.breaker_opened_at is null;
	if not o_calm then
		p_limit := autopost.probes_now(v_limit, v_now);
		if p_limit = 0 then
			return;
		end if;
	end if;

	v_wanted := p_limit;
	for v_gate in
		select g.channel_id, g.inflight, g.last_provider_message_id, g.listed, case when c.enabled
			and coalesce(greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until), v_now) <= v_now then c.max_parallel - g.inflight
			else 0 end as room
		from (
			select g.channel_id, g.inflight, g.last_provider_message_id, g.listed from autopost.channel_gates g
			where g.workspace_id = p_workspace_id and g.platform = p_platform and g.rate_group = p_rate_group
			and g.ready_at <= v_now and g.ready_at < 'infinity'
			order by g.ready_at
			limit v_gates
			for no key update of g skip locked) g
		cross join lateral (select c.max_parallel, c.enabled, c.paused_until, c.cooldown_until, c.credential_until, c.held_until from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = g.channel_id limit 1) c
	loop
		o_visited := array_append(o_visited, v_gate.channel_id);
		o_inflight := array_append(o_inflight, v_gate.inflight);
		o_posts := array_append(o_posts, v_gate.last_provider_message_id);
		if not v_gate.listed then
			o_unlisted := array_append(o_unlisted, v_gate.channel_id);
		end if;
		v_wanted := v_wanted - least(v_gate.room, v_share);
		exit when v_wanted <= 0;
	end loop;

	if v_now >= p_began and v_now < p_began + autopost.slot_horizon() then
		v_known := io_hours;
	end if;
	-- Read under the lock of the gates: disabling or pausing a channel moves its gate.
	select array_agg(o.channel_id), array_agg(o.n), array_agg(o.room), array_agg(o.next), array_agg(o.step),
		v_limit.rate_rps > 0 or max(o.step) > 0, array_agg(distinct o.hours) filter (where o.hours is not null and o.hours <> all (v_known))
	into v_open, v_at, v_rooms, v_next, v_steps, v_limited, v_hours
	from (
		select u.channel_id, u.n::int, autopost.slot_micros(coalesce(l.effective_rps, c.effective_rps)) as step,
			autopost.slot_offset(l.next_allowed_at, v_now) as next, coalesce(l.hours, c.hours) as hours,
			coalesce(l.max_parallel, c.max_parallel) - u.inflight as room
		from unnest(o_visited, o_inflight) with ordinality u (channel_id, inflight, n)
		left join lateral (
			select c.max_parallel, c.effective_rps, c.next_allowed_at,
				case when c.window_mode = 'windowed' then autopost.hours_key(c.timezone, c.posting_window) end as hours
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id
			and c.effective_rps > 0 and autopost.slot_offset(c.next_allowed_at, v_now) < v_horizon
			and c.enabled
			and coalesce(greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until), v_now) <= v_now
			limit 1
			for no key update of c skip locked) l on true
		left join lateral (
			select c.max_parallel, c.effective_rps,
				case when c.window_mode = 'windowed' then autopost.hours_key(c.timezone, c.posting_window) end as hours
			from autopost.channels c
			where l.max_parallel is null and c.workspace_id = p_workspace_id and c.channel_id = u.channel_id
			and coalesce(c.effective_rps, 0) = 0 and c.enabled
			and coalesce(greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until), v_now) <= v_now
			limit 1) c on true
		order by u.n) o
	where o.room > 0;
	foreach v_key in array coalesce(v_hours, '{}') loop
		if v_now >= p_began and v_now < p_began + autopost.slot_horizon()
			and autopost.hours_are_open(v_key, v_now, v_until) then
			io_hours := array_append(io_hours, v_key);
			v_hours := array_remove(v_hours, v_key);
		end if;
	end loop;
	if v_hours <> '{}' then -- a window is closed or may close soon
		o_windows := autopost.windows_of(p_workspace_id, o_visited, v_now);
		select array_agg(o.channel_id), array_agg(o.n), array_agg(o.room), array_agg(o.next), array_agg(o.step),
			array_agg(o_windows ? o.channel_id)
		into v_open, v_at, v_rooms, v_next, v_steps, v_closing
		from (
			select u.channel_id, u.n, u.room, u.next, u.step
			from unnest(v_open, v_at, v_rooms, v_next, v_steps) with ordinality u (channel_id, n, room, next, step, place)
			where o_windows ->> u.channel_id is distinct from 'closed'
			order by u.place) o;
	end if;

	-- Read under the lock of the gates: a transaction that adds the first quota or budget locks them.
	select exists (select from autopost.quotas q where q.workspace_id = p_workspace_id),
		exists (select from autopost.budgets b where b.workspace_id = p_workspace_id)
	into v_has_quotas, v_has_budgets;
	if v_has_quotas then
		select q.subjects, q.rooms, q.room into o_quotas, v_rooms, p_limit
		from autopost.within_quota(p_workspace_id, p_platform, p_rate_group, v_open, v_rooms, p_limit) q;
	end if;

	-- Takes enough turns to fill the limit; mostly one iteration.
	v_turns := ceil(p_limit::numeric / greatest(1, cardinality(v_open)));
	loop
		select coalesce(array_agg(r.delivery_id), '{}'), array_agg(r.n), array_agg(r.cost),
			coalesce(bool_or(r.turn = v_turns and r.turn < r.room), false)
		into o_ids, v_places, v_costs, v_more
		from (
			select d.delivery_id, u.n::int as n, u.room, d.cost,
				row_number() over (partition by u.n order by d.key_at, d.delivery_id) as turn
			from unnest(v_open, v_rooms) with ordinality u (channel_id, room, n)
			cross join lateral (
				select p.delivery_id, p.key_at, case when v_limited then autopost.step_cost(p.render_meta) end as cost
				from (
					select q.delivery_id, q.due_at as key_at, q.render_meta
					from (
						select d.delivery_id, d.due_at, d.status, d.render_meta from autopost.deliveries d
						where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
						and d.phase in ('active', 'retry') and d.status <> 'sending' and d.due_at <= v_now
						order by d.due_at, d.delivery_id
						limit least(v_turns, u.room)
						for no key update of d skip locked) q
					where q.status = 'queued'
					union all
					select q.delivery_id, q.key_at, q.render_meta
					from (
						select from autopost.deliveries d
						where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
						and d.phase = 'retry' and d.next_retry_at <= v_now
						order by d.next_retry_at
						limit 1) a
					cross join lateral (
						select d.delivery_id, greatest(d.not_before, d.scheduled_for) as key_at, d.render_meta
						from autopost.deliveries d
						where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
						and d.phase = 'retry' and d.due_at <= v_now
						order by greatest(d.not_before, d.scheduled_for), d.delivery_id
						limit least(v_turns, u.room)
						for no key update of d skip locked) q) p
				order by p.key_at, p.delivery_id
				limit least(v_turns, u.room)) d
			order by turn, n
			limit p_limit) r;
		exit when cardinality(o_ids) >= p_limit or not v_more;
		v_turns := least(p_limit, v_turns * 4);
	end loop;
	if o_quotas is not null then
		select q.ids, q.places, q.costs, q.denied into o_ids, v_places, v_costs, o_denied
		from autopost.posts_within_quota(p_workspace_id, p_platform, p_rate_group, o_quotas, o_ids, v_places, v_costs) q;
	end if;
	if v_has_budgets then
		select b.ids, b.places, b.costs, b.denied into o_ids, v_places, v_costs, o_unpaid
		from autopost.within_budget(p_workspace_id, o_ids, v_places, v_costs) b;
	end if;

	if v_limited then
		v_passed := extract(epoch from autopost.now_ts() - v_now) * 1000000;
		-- After the locks: a slot that passed before their release is not recorded.
		v_now := v_now + v_passed * interval '1 microsecond';
		if v_passed <> 0 and 0 < any (v_next) then
			v_next := array(select greatest(0, a.next - v_passed)
				from unnest(v_next) with ordinality a (next, n) order by a.n);
		end if;
		v_spaced := autopost.space_slots(v_places, v_costs, v_next, v_steps,
			case when v_limit.rate_rps > 0 then autopost.slot_offset(v_limit.next_allowed_at, v_now) else 0 end,
				autopost.slot_micros(v_limit.rate_rps), v_horizon - 1, v_now);
		o_slots := v_spaced.o_send_at;
		if true = any (v_closing) then
			v_spaced.o_slots := autopost.slots_in_window(p_workspace_id, v_spaced.o_slots, v_places, v_open, v_closing,
				v_now);
		end if;
		if array_position(v_spaced.o_slots, null) is not null then
			select coalesce(array_agg(s.id), '{}'), coalesce(array_agg(s.send_at), '{}'), array_agg(s.place)
			into o_ids, o_slots, v_places
			from (select u.id, u.send_at, u.place
				from unnest(o_ids, v_spaced.o_slots, o_slots, v_places) with ordinality u (id, slot, send_at, place, n)
				where u.slot is not null order by u.n) s;
		end if;
		v_passed := extract(epoch from autopost.now_ts() - v_now) * 1000000;
		if v_passed < any (v_spaced.o_next) then
			perform autopost.move_slots(p_workspace_id, v_open, v_steps, v_spaced.o_next, v_now);
		end if;
		if v_limit.rate_rps > 0 and o_ids <> '{}' and v_spaced.o_group_next > v_passed then
			v_limit.next_allowed_at := v_now + v_spaced.o_group_next * interval '1 microsecond';
			update autopost.platform_limits l
			set next_allowed_at = v_limit.next_allowed_at
			where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
		end if;
	end if;
	if cardinality(o_slots) < cardinality(o_ids) then
		o_slots := array_fill(null::timestamptz, array[cardinality(o_ids)]);
	end if;
	if v_has_budgets then
		perform autopost.charge_posts(p_workspace_id, o_ids);
	end if;
	if v_limit.breaker_opened_at is not null and o_ids <> '{}' then
		perform autopost.begin_probe(v_limit, o_ids[1], v_now);
	end if;
	o_taken := array_fill(0, array[cardinality(o_visited)]);
	foreach v_place in array coalesce(v_places, '{}') loop
		o_places := array_append(o_places, p_before + v_at[v_place]);
		o_taken[v_at[v_place]] := o_taken[v_at[v_place]] + 1;
	end loop;
	o_next := case when v_limit.rate_rps > 0 then v_limit.next_allowed_at end;
end
$$;

create or replace function autopost.update_gates(p_workspace_id text, p_visited text[], p_inflight int[],
	p_unlisted text[], p_taken int[], p_next timestamptz[], p_windows jsonb, p_places int[], p_waits timestamptz[],
	p_allowed timestamptz[], p_windowed boolean[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
-- Purpose: moves the gates that a claim holds after its rows are in status sending. It adds the
--          rows to the count in flight and sets the next visit. A full or disabled channel is not
--          visited until a commit or an edit opens it. A channel that is paused or cooling, or has
--          no credential or slots, is visited when that ends; any other when its next row is due. No
--          visit is before the posting window opens. p_inflight, p_taken: the count before the claim
--          and the rows taken of each channel of p_visited; p_unlisted: claim_from_group; p_next: the
--          next slot of its group if that has a limit; p_windows: windows_of; p_places, p_waits,
--          p_allowed, p_windowed: claimed_channels.
-- Reads:   channels, deliveries.
-- Writes:  channel_gates, channels_in_flight.
declare
	v_now timestamptz := autopost.now_ts();
	v_ahead interval := autopost.slot_horizon();
	v_ready timestamptz[];
begin
	-- The sub-select hides the number of channels from the planner. With it, each small claim would get a new plan,
	-- because a plan for one channel costs less than one for any number.
	select array_agg(case
		when u.full_or_disabled then 'infinity'::timestamptz
		when c.channel_id is not null then autopost.opens_at(c.window_mode, c.timezone, c.posting_window, w.wish,
			greatest(u.allowed, u.next))
		else w.wish end order by u.n)
	into v_ready
	from (
		select u.channel_id, u.next, u.waits, u.allowed, u.windowed, u.n, u.inflight + u.taken >= u.places as full_or_disabled
		from unnest((select p_visited), p_inflight, p_taken, p_next, p_places, p_waits, p_allowed, p_windowed) with ordinality
			u (channel_id, inflight, taken, next, places, waits, allowed, windowed, n)) u
	left join lateral (
		select d.due_at from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
			and not u.full_or_disabled and coalesce(u.waits <= v_now, true)
		order by d.due_at
		limit 1) n on true
	cross join lateral (select case
		when u.waits > v_now then u.waits
		else greatest(v_now, coalesce(n.due_at, 'infinity'), u.allowed - v_ahead) end as wish) w
	left join lateral (
		select c.channel_id, c.window_mode, c.timezone, c.posting_window from autopost.channels c
		where u.windowed and not u.full_or_disabled and w.wish < 'infinity'
			and (p_windows ? u.channel_id or w.wish > v_now + v_ahead)
			and c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c on true;
	if p_unlisted <> '{}' then
		p_unlisted := array(select u.channel_id from unnest(p_visited, p_taken) u (channel_id, taken)
			where u.taken > 0 and u.channel_id = any (p_unlisted));
		perform autopost.list_in_flight(p_workspace_id, p_unlisted) where p_unlisted <> '{}';
	end if;
	update autopost.channel_gates g
	set inflight = g.inflight + u.places, ready_at = u.ready_at, listed = g.listed or u.places > 0
	from autopost.gate_changes(p_visited, p_taken, v_ready, null) u
	where g.workspace_id = p_workspace_id and g.channel_id between u.channel_id and u.channel_id;
end
$$;
