create or replace function autopost.next_due(p_workspace_id text, p_channel_id text) returns timestamptz
language plpgsql stable set enable_sort = off
as $$
-- Purpose: when the next waiting delivery of a channel is due; infinity if none. Sorts are off: the
--          planner expects few rows because of row-level security, and would read the whole queue.
-- Reads:   deliveries.
begin
	return (
		select coalesce((
			select d.due_at from autopost.deliveries d
			where d.workspace_id = p_workspace_id
			and d.channel_id = p_channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
			order by d.due_at
			limit 1), 'infinity'));
end
$$;

create or replace function autopost.in_flight(p_workspace_id text) returns table (delivery_id uuid, channel_id text,
	message_id uuid, trace_id uuid, status text, not_before timestamptz, scheduled_for timestamptz, due_at timestamptz,
	claimed_at timestamptz, claimed_by text, claim_token text, sending_started_at timestamptz,
	sending_lease_until timestamptz, call_begun_at timestamptz)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: the deliveries in flight of a workspace. No index holds them, because a claim changes
--          none. They are the first of the queues of the channels with a count in flight: a claim
--          takes the deliveries that are due longest. Each queue is read until all are found.
-- Reads:   channels_in_flight, channel_gates, deliveries.
begin
	return query
	select d.delivery_id, d.channel_id, d.message_id, d.trace_id, d.status, d.not_before, d.scheduled_for, d.due_at,
		d.claimed_at, d.claimed_by, d.claim_token, d.sending_started_at, d.sending_lease_until, d.call_begun_at
	from autopost.channels_in_flight f
	cross join lateral (
		select g.channel_id, g.inflight from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.channel_id = f.channel_id limit 1) g
	cross join lateral (
		select x.* from autopost.deliveries x
		where x.workspace_id = p_workspace_id and x.channel_id = g.channel_id and x.phase in ('active', 'retry')
			and x.status = 'sending'
		order by x.due_at, x.delivery_id
		limit g.inflight) d
	where f.workspace_id = p_workspace_id
	union all
	select d.delivery_id, d.channel_id, d.message_id, d.trace_id, d.status, d.not_before, d.scheduled_for, d.due_at,
		d.claimed_at, d.claimed_by, d.claim_token, d.sending_started_at, d.sending_lease_until, d.call_begun_at
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.phase = 'claimed';
end
$$;

create or replace function autopost.gate_changes(p_channel_ids text[], p_counts int[], p_ready_at timestamptz[],
	p_posts text[], p_parallel int[] default null)
	returns table (channel_id text, places int, ready_at timestamptz, post text, parallel int)
language plpgsql immutable parallel safe rows 1
as $$
-- Purpose: the rows of these arrays for an UPDATE of gates by key, as in few.
begin
	return query select u.* from unnest(p_channel_ids, p_counts, p_ready_at, p_posts, p_parallel) u;
end
$$;

create or replace function autopost.list_in_flight(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: adds channels whose gates are locked to channels_in_flight. The caller sets listed in these
--          gates; before that, no count in flight can rise.
-- Writes:  channels_in_flight.
begin
	insert into autopost.channels_in_flight (workspace_id, channel_id)
	select w.workspace_id, u.id from unnest(p_channel_ids) u (id)
	join autopost.workspaces w on w.workspace_id = p_workspace_id
	on conflict (workspace_id, channel_id) do nothing;
end
$$;

create or replace function autopost.lock_gates(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: locks the gates of channels in order, by one probe each (lock_channels).
-- Locks:   channel_gates (channel_id).
begin
	perform 1 from (select distinct u.id from unnest(p_channel_ids) u (id) order by u.id) u
	cross join lateral (
		select 1 from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.channel_id = u.id limit 1
		for no key update of g) g;
end
$$;

create or replace function autopost.arm_gates(p_workspace_id text, p_channel_ids text[], p_due timestamptz) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: opens the gates of channels by p_due and notifies dispatch if one was closed. It is the
--          last act of each function that makes deliveries due. It locks gates that look open too,
--          because a claim may be closing them. If the first gate looks closed, most are, and one
--          UPDATE locks and opens all. Otherwise gates that stay open get no new version. Both ways
--          lock in the order of the primary key: the settings leave no other plan.
-- Locks:   channel_gates (channel_id).
-- Writes:  channel_gates.
declare
	v_closed text[];
begin
	if (select g.ready_at > p_due from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.channel_id = p_channel_ids[1]) then
		update autopost.channel_gates g
		set ready_at = least(g.ready_at, p_due)
		where g.workspace_id = p_workspace_id
		and g.channel_id = any (p_channel_ids);
		perform pg_notify('autopost_wake', 'deliveries');
		return;
	end if;
	select array_agg(l.channel_id) filter (where l.ready_at > p_due) into v_closed
	from (
		select g.channel_id, g.ready_at from autopost.channel_gates g
		where g.workspace_id = p_workspace_id
		and g.channel_id = any (p_channel_ids)
		order by g.channel_id
		for no key update of g
	) l;
	if v_closed is not null then
		update autopost.channel_gates g
		set ready_at = p_due
		where g.workspace_id = p_workspace_id
		and g.channel_id = any (v_closed);
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.rearm_gate(p_workspace_id text, p_channel_id text, p_returned int) returns void
language plpgsql
as $$
-- Purpose: releases p_returned in-flight places of a channel and sets its gate to the next due
--          delivery.
-- Locks:   channel_gates.
-- Reads:   deliveries.
-- Writes:  channel_gates.
declare
	v_gate autopost.channel_gates;
	v_due timestamptz;
begin
	select g.* into v_gate from autopost.channel_gates g
	where g.workspace_id = p_workspace_id
	and g.channel_id = p_channel_id
	for no key update of g;
	v_due := autopost.next_due(p_workspace_id, p_channel_id);
	update autopost.channel_gates g
	set inflight = g.inflight - p_returned,
		ready_at = least(g.ready_at, v_due)
	where g.workspace_id = p_workspace_id
	and g.channel_id = p_channel_id
	and (p_returned <> 0 or g.ready_at > v_due);
	if v_due < v_gate.ready_at then
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.doubtful_gates(p_workspace_id text, p_late_before timestamptz) returns text[]
language plpgsql stable
as $$
-- Purpose: channels whose gates do not match their waiting and in-flight deliveries, or whose late
--          flag is wrong (late: due before p_late_before; null: never). Reads without locks; the
--          caller checks again under its lock. In-flight deliveries are counted among the first of
--          each queue, and in turn, a channel an hour, in the whole queue.
-- Reads:   channel_gates, channels, deliveries.
declare
	v_now timestamptz := autopost.now_ts();
	v_turn int := extract(epoch from v_now)::bigint / 30 % 120; -- the sweep runs every 30 seconds
begin
	return array(
		select g.channel_id
		from autopost.channel_gates g
		cross join lateral (
			select row(c.*)::autopost.channels from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = g.channel_id limit 1) c (channel)
		cross join lateral (
			select (select count(*) filter (where f.status = 'sending') from (
				select d.status from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = g.channel_id and d.phase in ('active', 'retry')
				order by d.due_at, d.delivery_id
				limit case when (hashtext(g.channel_id) & 2147483647) % 120 <> v_turn then g.inflight + 10 end) f) as inflight, (
				select d.due_at from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = g.channel_id
					and d.phase in ('active', 'retry') and d.status <> 'sending'
				order by d.due_at limit 1) as due_at) w
		where g.workspace_id = p_workspace_id
		and (w.inflight <> g.inflight
			or (g.ready_at > v_now and w.due_at < g.ready_at and w.inflight < (c.channel).max_parallel)
			or g.late <> coalesce(w.due_at <= p_late_before
				and not autopost.is_held(c.channel, g.ready_at, v_now), false))
		order by g.channel_id);
end
$$;

create or replace function autopost.keep_channel_gate() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds the gate of a new channel.
-- Writes:  channel_gates.
begin
	insert into autopost.channel_gates (workspace_id, channel_id, platform, rate_group)
	values (new.workspace_id, new.channel_id, new.platform, new.rate_group);
	return null;
end
$$;

create or replace trigger keep_channel_gate after insert on autopost.channels
	for each row execute function autopost.keep_channel_gate();

create or replace function autopost.platform_rate(p_platform text) returns numeric
language plpgsql stable
as $$
-- Purpose: the limit of a rate group that its platform publishes; null if it publishes none.
-- Reads:   platforms.
begin
	return (select p.group_rps from autopost.platforms p where p.platform = p_platform);
end
$$;

create or replace function autopost.keep_rate_group() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: gives a new rate group of a channel the limit of its platform, if that publishes one. A
--          known group keeps its limit. It runs before the row of a new channel is locked.
-- Reads:   platforms.
-- Writes:  platform_limits.
begin
	insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, updated_at)
	select new.workspace_id, new.platform, new.rate_group, p.rps, autopost.now_ts()
	from (select autopost.platform_rate(new.platform) as rps) p
	where p.rps > 0 and exists (select 1 from autopost.workspaces w where w.workspace_id = new.workspace_id)
	on conflict (workspace_id, platform, rate_group) do nothing;
	return new;
end
$$;

create or replace trigger keep_rate_group before insert or update of platform, rate_group on autopost.channels
	for each row execute function autopost.keep_rate_group();

create or replace function autopost.move_channel_gates() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: keeps gates correct when channels change: moves them to another rate group, and opens
--          them when channels are enabled, resumed, or get more capacity or other hours. Runs once
--          per statement, in the order of the channels, so it never deadlocks with enqueue or
--          commit. A union finds the changes without a join, whose plan would suit only the first
--          edit. A trigger with transition tables cannot name columns, so stamp_channel sets a
--          flag; claims and commits cost nothing.
-- Locks:   channel_gates (workspace_id, channel_id).
-- Writes:  channel_gates.
declare
	v_changed record;
begin
	perform set_config('autopost.channels_stirred', '', true);
	for v_changed in
		select r.workspace_id, r.channel_id, count(distinct (r.platform, r.rate_group)) > 1 as moved,
			count(distinct (r.enabled, r.paused_until, r.held_until, r.credential_until, r.max_parallel, r.rate_rps, r.timezone, r.window_mode,
				r.posting_window)) > 1 as stirred
		from (
			select o.workspace_id, o.channel_id, o.platform, o.rate_group, o.enabled, o.paused_until, o.held_until, o.credential_until,
				o.max_parallel,
				o.rate_rps, o.timezone, o.window_mode, o.posting_window
			from before_rows o
			union
			select n.workspace_id, n.channel_id, n.platform, n.rate_group, n.enabled, n.paused_until, n.held_until, n.credential_until,
				n.max_parallel,
				n.rate_rps, n.timezone, n.window_mode, n.posting_window
			from after_rows n) r
		group by r.workspace_id, r.channel_id
		having count(*) > 1
		order by r.workspace_id, r.channel_id
	loop
		if v_changed.moved then
			update autopost.channel_gates g
			set platform = c.platform, rate_group = c.rate_group
			from autopost.channels c
			where g.workspace_id = v_changed.workspace_id and g.channel_id = v_changed.channel_id
			and c.workspace_id = v_changed.workspace_id and c.channel_id = v_changed.channel_id;
		end if;
		if v_changed.stirred then
			perform autopost.rearm_gate(v_changed.workspace_id, v_changed.channel_id, 0);
		end if;
	end loop;
	return null;
end
$$;

create or replace trigger move_channel_gates after update on autopost.channels
	referencing old table as before_rows new table as after_rows
	for each statement when (current_setting('autopost.channels_stirred',
		true) = 'yes') execute function autopost.move_channel_gates();

create or replace function autopost.stamp_channel() returns trigger
language plpgsql
as $$
-- Purpose: sets updated_at when the configuration of a channel changes; claims and commits do not
--          count. An enabled channel starts with error_streak 0. Another credential ends the wait
--          for a missing one.
begin
	new.updated_at := autopost.now_ts();
	if new.enabled and not old.enabled then
		new.error_streak := 0;
	end if;
	if new.auth_ref <> old.auth_ref then
		new.credential_missing_at := null;
		new.credential_until := null;
	end if;
	-- for a longer pause, the next claim moves the gate
	if coalesce(new.paused_until, '-infinity') < old.paused_until
	or coalesce(new.credential_until, '-infinity') < old.credential_until or new.held_until is distinct from old.held_until
	or (new.platform, new.rate_group, new.enabled, new.max_parallel, new.rate_rps, new.timezone, new.window_mode,
		new.posting_window)
	is distinct from (old.platform, old.rate_group, old.enabled, old.max_parallel, old.rate_rps, old.timezone,
		old.window_mode, old.posting_window) then
		-- for move_channel_gates at the end of the statement
		perform set_config('autopost.channels_stirred', 'yes', true);
	end if;
	return new;
end
$$;

create or replace trigger stamp_channel
	before update of platform, target_id, auth_ref, rate_group, enabled, title, send_mode, rate_rps, max_parallel,
		paused_until, held_until, timezone, window_mode,
		posting_window, dedup_ttl_hours, on_unknown, on_auth_lost, settings, tags, route_filter,
			template_ref, moderated on autopost.channels
	for each row execute function autopost.stamp_channel();

create or replace function autopost.ring_when_lifted() returns trigger
language plpgsql
as $$
-- Purpose: notifies dispatch when a workspace becomes active or the limit or cooldown of a group
--          changes.
begin
	perform pg_notify('autopost_wake', 'deliveries');
	return null;
end
$$;

create or replace trigger ring_when_activated after update of status on autopost.workspaces
	for each row when (new.status = 'active' and old.status <> 'active') execute function autopost.ring_when_lifted();
create or replace trigger ring_when_lifted after update of rate_rps, cooldown_until on autopost.platform_limits
	for each row when (new.cooldown_until is null and old.cooldown_until is not null or new.rate_rps is distinct
		from old.rate_rps)
	execute function autopost.ring_when_lifted();

create or replace function autopost.is_held(p_channel autopost.channels, p_ready_at timestamptz,
	p_now timestamptz) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if something keeps a channel from sending, so that its deliveries are not late. A
--          gate far in the future is held, for example by a quota. A gate may not know of a pause
--          yet.
select not p_channel.enabled or p_channel.window_mode <> 'immediate'
	or greatest(p_channel.paused_until, p_channel.cooldown_until, p_channel.credential_until, p_channel.held_until, '-infinity') > p_now
	or p_ready_at > p_now + interval '1 minute'
$$;
