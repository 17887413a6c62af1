create or replace function autopost.start_obstacle(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_slot timestamptz, p_now timestamptz
) returns text
language sql stable
as $$
-- Purpose: the reason why no call of this channel may start now or at its slot; null if it may.
--          Only the gates keep the end of the wait, not the row, because an operator may end it
--          sooner.
select case
	when p_status <> 'active' then 'workspace'
	when not p_channel.enabled then 'disabled'
	when p_channel.held_until > p_now or p_channel.paused_until > p_now then 'paused'
	when greatest(p_channel.cooldown_until, p_limit.cooldown_until) > p_now then 'rate'
	when p_channel.window_mode = 'windowed'
		and autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window,
			greatest(p_slot, p_now)) > greatest(p_slot, p_now) then 'window' end
$$;

create or replace function autopost.share_channels(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: keeps channels from changing. One probe per channel: by any (ids) the planner would
--          read all channels of a small workspace.
-- Locks:   channels (channel_id), shared.
begin
	perform 1 from (select distinct u.id from unnest(p_channel_ids) u (id) order by u.id) u
	cross join lateral (
		select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = u.id limit 1
		for share of c) c;
end
$$;

create or replace function autopost.lock_for_start(p_workspace_id text, p_ids uuid[], p_channel_ids text[],
	p_late boolean) returns void
language plpgsql
as $$
-- Purpose: locks the rows that starting these calls may touch. Only a call that needs a new slot
--          changes groups and channels; all others must not see them change.
-- Locks:   platform_limits if p_late, channels (channel_id; shared unless p_late), deliveries
--          (channel_id, delivery_id), in this order.
begin
	if p_late then
		perform autopost.lock_groups(p_workspace_id, p_channel_ids);
		perform autopost.lock_channels(p_workspace_id, p_channel_ids);
	else
		perform autopost.share_channels(p_workspace_id, p_channel_ids);
	end if;
	perform autopost.lock_deliveries(p_workspace_id, p_ids);
end
$$;

create or replace function autopost.call_obstacle(p_workspace_id text, p_status text, p_delivery_id uuid,
	p_channel_id text, p_send_at timestamptz, p_now timestamptz) returns text
language plpgsql stable
as $$
-- Purpose: start_obstacle with the current row of the channel. While the breaker of a group is
--          open, only the probe may start.
-- Reads:   channels, platform_limits.
declare
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
begin
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group;
	return coalesce(autopost.start_obstacle(p_status, v_channel, v_limit, p_send_at, p_now),
		case when v_limit.breaker_opened_at is not null and v_limit.probe_id is distinct from p_delivery_id
			then 'rate' end);
end
$$;

create or replace function autopost.doubtful_channels(p_workspace_id text, p_status text, p_channel_ids text[],
	p_now timestamptz, p_windows jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the channels that may have an obstacle, as keys of an object. Their calls are checked
--          one by one. p_windows: their windows_of now, or less than slot_horizon ago.
-- Reads:   channels, platform_limits.
begin
	return (
		select coalesce(jsonb_object_agg(c.channel_id, true), '{}')
		from unnest(p_channel_ids) u (channel_id)
		cross join lateral (
			select c.channel_id, c.platform, c.rate_group, c.enabled, c.paused_until, c.held_until, c.cooldown_until
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c
		left join lateral (
			select l.cooldown_until, l.breaker_opened_at from autopost.platform_limits l
			where l.workspace_id = p_workspace_id and l.platform = c.platform and l.rate_group = c.rate_group
				limit 1) l on true
		where p_status <> 'active' or not c.enabled
			or greatest(c.paused_until, c.held_until, c.cooldown_until, l.cooldown_until) > p_now
				or p_windows ? c.channel_id
			or l.breaker_opened_at is not null);
end
$$;

create or replace function autopost.few(p_ids uuid[], p_tokens text[], p_places int[], p_slots timestamptz[] default null,
	p_posts text[] default null, p_raws jsonb[] default null, p_sent_ats jsonb[] default null, p_starts boolean[] default null)
	returns table (id uuid, token text, place int, slot timestamptz, post text, raw jsonb, sent_at jsonb, starts boolean, n bigint)
language plpgsql immutable parallel safe rows 1
as $$
-- Purpose: the rows of these arrays, numbered, for an UPDATE by key. The planner expects one row, so it probes
--          the primary key for each, whatever it believes about the table. With the true number it
--          reads all deliveries of a workspace that it takes for small, and keeps that plan. The UPDATE
--          says "between id and id": of "= id" on a unique key the planner counts the cost twice.
begin
	return query select u.*
	from unnest(p_ids, p_tokens, p_places, p_slots, p_posts, p_raws, p_sent_ats, p_starts) with ordinality u;
end
$$;

create or replace function autopost.start_together(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
-- Purpose: start_items for the usual batch in one probe, one UPDATE and one INSERT: unstarted calls
--          under current claims with one lease, whose slots are due or limited nothing. The settings
--          keep the plans by key, whatever the statistics are.
-- Returns: the answers in order; null, with nothing changed, for any other batch.
-- Raises:  AP001 for a malformed item.
-- Locks:   see lock_for_start; then channel_gates if a claim is released.
-- Reads:   workspaces, channels, platform_limits.
-- Writes:  deliveries, events (send_attempt); as begin_or_release.
declare
	v_ids uuid[] := autopost.uuids_of(p_items, 'delivery_id');
	v_tokens text[] := array(select i.value ->> 'claim_token' from jsonb_array_elements(p_items) with ordinality i
		order by i.ordinality);
	v_size int := cardinality(v_ids);
	v_places int[]; -- index in p_items of each call, in the order of the locks
	v_slots timestamptz[];
	v_channels text[];
	v_found int;
	v_late uuid[]; -- calls whose slot is past, or beyond the horizon of any claim
	v_claimed timestamptz;
	v_lease timestamptz;
	v_alike boolean;
	v_passed jsonb;
	v_asked timestamptz := autopost.now_ts();
	v_tolerance interval := autopost.slot_tolerance();
	v_before timestamptz := v_asked - v_tolerance;
	v_now timestamptz;
	v_begun_at timestamptz;
	v_status text;
	v_doubtful jsonb;
	v_stopped uuid[] := '{}'; -- calls with an obstacle
	v_answer jsonb;
	v_answers jsonb;
	v_done int[];
	v_prefix text;
	v_number bigint := (1::bigint << 56) + (random() * (1::bigint << 58))::bigint; -- 15 hexadecimal digits
begin
	perform autopost.require_argument('claim_token',
		array_position(v_tokens, null) is null and array_position(v_tokens, '') is null);
	select array_agg(r.delivery_id), array_agg(r.token), array_agg(r.place), array_agg(r.send_at),
		array_agg(distinct r.channel_id),
		count(distinct r.delivery_id), min(r.claimed_at), min(r.sending_lease_until),
		min(r.claimed_at) = max(r.claimed_at) and min(r.sending_lease_until) = max(r.sending_lease_until),
		array_agg(r.delivery_id) filter (where r.send_at < v_before or r.send_at > v_asked + autopost.slot_horizon())
	into v_ids, v_tokens, v_places, v_slots, v_channels, v_found, v_claimed, v_lease, v_alike, v_late
	from (
		select u.id as delivery_id, u.token, u.place::int, d.channel_id, d.claimed_at, d.sending_lease_until, d.send_at
		from unnest(v_ids, v_tokens) with ordinality u (id, token, place)
		cross join lateral (
			select d.channel_id, d.status, d.claim_token, d.claimed_at, d.sending_lease_until, d.send_at, d.call_begun_at
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
		where d.status = 'sending' and d.claim_token = u.token and d.call_begun_at is null
		order by d.channel_id, u.id) r;
	if v_found is distinct from v_size or not v_alike then
		return null;
	end if;
	if v_late is null then
		perform autopost.share_channels(p_workspace_id, v_channels);
	else
		perform autopost.lock_groups(p_workspace_id, v_channels), autopost.lock_channels(p_workspace_id, v_channels);
	end if;
	v_status := (select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id);
	v_now := autopost.now_ts();
	v_begun_at := greatest(v_now, v_claimed); -- never before its claim, even if the clock was put back
	if v_late is not null then
		v_passed := autopost.passed_slots(p_workspace_id, v_late, v_now, v_tolerance / 2);
		if v_passed is null then
			return null;
		end if;
		v_slots := array(select case when v_passed ? u.id::text then (v_passed ->> u.id::text)::timestamptz else u.slot end
			from unnest(v_ids, v_slots) with ordinality u (id, slot, n) order by u.n);
	end if;
	v_doubtful := autopost.doubtful_channels(p_workspace_id, v_status, v_channels, v_now,
		autopost.windows_of(p_workspace_id, v_channels, v_now));
	if v_doubtful <> '{}' or v_now > v_asked + v_tolerance then -- some may be released: lock all in order
		v_before := greatest(v_before, v_now - v_tolerance);
		perform autopost.lock_deliveries(p_workspace_id, v_ids);
		v_stopped := array(
			select u.id from unnest(v_ids, v_slots) u (id, slot)
			cross join lateral (select d.channel_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
			where v_doubtful ? d.channel_id
			and autopost.call_obstacle(p_workspace_id, v_status, u.id, d.channel_id, u.slot, v_now) is not null);
	end if;
	v_answer := jsonb_build_object('applied', true, 'now', v_now, 'deadline',
		autopost.call_deadline(v_lease, v_claimed, autopost.setting_interval('lease_margin_seconds')));
	v_prefix := autopost.uuid_v7_prefix(clock_timestamp()); -- as in new_id: events of one instant keep their order
	with begun as (
		update autopost.deliveries d
		set call_begun_at = v_begun_at, send_at = u.slot
		from autopost.few(v_ids, v_tokens, v_places, v_slots) u
		where d.workspace_id = p_workspace_id and d.delivery_id between u.id and u.id
		and d.status = 'sending' and d.claim_token = u.token and d.call_begun_at is null and d.sending_lease_until > v_now
		and coalesce(u.slot >= v_before, true)
		and u.id <> all (v_stopped)
		returning d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.claimed_by, d.send_at, u.place
	), logged as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_prefix || to_hex(v_number + b.place))::uuid, b.delivery_id, b.message_id,
			b.channel_id,
			v_begun_at, 'send_attempt', b.attempt, 'ok',
			autopost.start_meta(b.delivery_id, b.claimed_by, b.send_at, b.trace_id)
		from autopost.workspaces w
		-- The workspace is read once: its column fixes the order of the join.
		cross join lateral (select x.* from begun x where w.workspace_id <> '' offset 0) b
		where w.workspace_id = p_workspace_id
	)
	select jsonb_agg(v_answer || jsonb_build_object('send_at', b.send_at) order by b.place),
		array_agg(b.place order by b.place)
	into v_answers, v_done
	from autopost.workspaces w
	cross join lateral (select x.* from begun x where w.workspace_id <> '' offset 0) b
	where w.workspace_id = p_workspace_id;
	if coalesce(cardinality(v_done), 0) < v_size then
		perform autopost.lock_gates(p_workspace_id, v_channels);
		v_answers := (select jsonb_agg(coalesce(v_answers -> (array_position(v_done, i.ordinality::int) - 1),
			autopost.begin_or_release(p_workspace_id, v_status, i.value)) order by i.ordinality)
			from jsonb_array_elements(p_items) with ordinality i);
	end if;
	return v_answers;
end
$$;

create or replace function autopost.start_items(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: the answers of start_call to [{"delivery_id", "claim_token"}], in their order.
-- Locks:   as lock_for_start, then channel_gates if a claim may be released.
begin
	return coalesce(autopost.start_together(p_workspace_id, p_items), autopost.start_each(p_workspace_id, p_items));
end
$$;

create or replace function autopost.start_call(p_workspace_id text, p_delivery_id uuid, p_claim_token text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks the claim, the lease, the workspace, the channel and the group again, confirms
--          the reserved slot or takes a new one, and records that the call starts. Commit it just
--          before the first byte of the call. Repeatable with the same token; if the started call
--          is late for its slot, it gets the next one.
-- Returns: {"applied": true, "send_at", "deadline", "now": the database's clock} or {"applied":
--          false, "reason": "stale" | "paused" | "disabled" | "workspace" | "window" | "rate"}.
--          After a refusal the row is already released; "stale" means that the claim is not the
--          caller's any more.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   platform_limits for a new slot, channels (shared unless a new slot is needed),
--          deliveries, channel_gates, in this order.
-- Writes:  events (send_attempt, released); channels and platform_limits for a new slot; deliveries
--          if released.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_id', p_delivery_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	return autopost.start_items(p_workspace_id,
		jsonb_build_array(jsonb_build_object('delivery_id', p_delivery_id, 'claim_token', p_claim_token))) -> 0;
end
$$;

create or replace function autopost.start_call_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: start_call for many deliveries. p_items: [{"delivery_id", "claim_token"}].
-- Returns: an array of its answers in the same order.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_array('items', p_items);
	return autopost.start_items(p_workspace_id, p_items);
end
$$;
