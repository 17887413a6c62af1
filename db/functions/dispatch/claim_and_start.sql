create or replace function autopost.claimed_channels(p_workspace_id text, p_channel_ids text[], p_taken int[],
	p_groups int[], p_calm boolean[], p_auth_refs text[], p_windows jsonb, p_windows_at timestamptz,
	out o_now timestamptz, out o_open boolean[], out o_targets text[], out o_auth_refs text[], out o_settings jsonb,
	out o_on_unknown text[], out o_places int[], out o_waits timestamptz[], out o_allowed timestamptz[], out o_windowed boolean[])
language plpgsql set enable_seqscan = off
as $$
-- Purpose: reads each channel that a claim visited once: what its rows and its gate need, and whether it may start
--          calls at o_now, as start_call would find: its credential is in p_auth_refs, and it has no obstacle
--          and no window that closes soon. It then stays shared until the end of the transaction, so that no
--          pause comes between. A channel that another transaction is changing may not start, nor one with
--          p_taken 0. p_groups: the index of its group in p_calm, which says whether calls of the group may start.
--          p_windows: windows_of at p_windows_at or later. p_auth_refs: empty to start no call.
-- Returns: arrays with one element for each of p_channel_ids (o_settings as jsonb, because Citus misreads jsonb[]):
--          o_places, the calls at once, 0 if it is disabled; o_waits, the end of its last obstacle; o_allowed, its
--          next slot if it has a rate.
-- Locks:   channels, shared, with skip locked.
-- Reads:   channel_auth, channels.
declare
	v_before timestamptz := autopost.now_ts();
begin
	select array_agg(r.open), array_agg(r.target_id), array_agg(r.auth_ref), jsonb_agg(r.settings), array_agg(r.on_unknown),
		array_agg(r.places), array_agg(r.waits), array_agg(r.allowed), array_agg(r.windowed)
	into o_open, o_targets, o_auth_refs, o_settings, o_on_unknown, o_places, o_waits, o_allowed, o_windowed
	from (
		select coalesce(l.open and p_calm[u.grp], false) as open, coalesce(l.target_id, c.target_id) as target_id,
			coalesce(a.auth_ref, l.auth_ref, c.auth_ref) as auth_ref, coalesce(l.settings, c.settings) as settings,
			coalesce(l.on_unknown, c.on_unknown) as on_unknown, coalesce(l.places, c.places) as places,
			coalesce(l.waits, c.waits) as waits, coalesce(l.allowed, c.allowed) as allowed,
			coalesce(l.windowed, c.windowed) as windowed
		from unnest(p_channel_ids, p_taken, p_groups) with ordinality u (channel_id, taken, grp, n)
		left join lateral (
			select a.auth_ref from autopost.channel_auth a
			-- Most workspaces have no row: the first condition is tested once.
			where exists (select 1 from autopost.channel_auth x where x.workspace_id = p_workspace_id)
				and a.workspace_id = p_workspace_id and a.channel_id = u.channel_id and u.taken > 0 limit 1) a on true
		left join lateral (
			select c.target_id, c.auth_ref, c.settings, c.on_unknown, case when c.enabled then c.max_parallel else 0 end as places,
				greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until) as waits,
				case when c.effective_rps > 0 then c.next_allowed_at end as allowed, c.window_mode = 'windowed' as windowed,
				c.enabled and coalesce(greatest(c.paused_until, c.held_until, c.cooldown_until) <= v_before, true) as open
			from autopost.channels c
			where p_auth_refs <> '{}' and c.workspace_id = p_workspace_id and c.channel_id = u.channel_id and u.taken > 0
				and coalesce(a.auth_ref, c.auth_ref) = any (p_auth_refs) limit 1
			for share of c skip locked) l on true
		left join lateral (
			select c.target_id, c.auth_ref, c.settings, c.on_unknown, case when c.enabled then c.max_parallel else 0 end as places,
				greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until) as waits,
				case when c.effective_rps > 0 then c.next_allowed_at end as allowed, c.window_mode = 'windowed' as windowed
			from autopost.channels c
			where l.target_id is null and c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c on true
		order by u.n) r;
	o_now := autopost.now_ts();
	if true = any (o_open) then
		if o_now < p_windows_at or o_now >= p_windows_at + autopost.slot_horizon() then
			p_windows := autopost.windows_of(p_workspace_id, p_channel_ids, o_now);
		end if;
		if p_windows <> '{}' then
			o_open := array(select u.open and not p_windows ? u.channel_id
				from unnest(p_channel_ids, o_open) with ordinality u (channel_id, open, n) order by u.n);
		end if;
	end if;
end
$$;

create or replace function autopost.claim_and_start(p_workspace_id text, p_run_id text, p_limit int, p_capacity jsonb,
	p_auth_refs text[])
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '100ms' set enable_bitmapscan = off
as $$
-- Purpose: claim_within and start_call in one transaction, for a caller that calls at once. Each claim
--          whose slot is due is started if its channel passes the checks of start_call and its
--          credential is in p_auth_refs: pass those whose secret is already known. Limit the claim to
--          free senders. All other claims need start_call. Commit before the first byte of a call.
-- Returns: as claim_within. call_begun_at is set if the call is started; its deadline then is the time
--          by which it must end, and send_at its slot.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   only with SKIP LOCKED; see claim_from_group and claimed_channels. PostgreSQL still waits for a row
--          that changes while it is being locked. A group with a long wait is left to the next claim,
--          so no deadlock can arise.
-- Reads:   messages, channels, cluster_identity.
-- Writes:  deliveries, channels, platform_limits, channel_gates, channels_in_flight, quota_uses, charges,
--          events (send_attempt).
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_durable text := current_setting('synchronous_commit');
	v_began timestamptz := autopost.now_ts();
	v_now timestamptz := v_began;
	v_secret text := left(replace(gen_random_uuid()::text, '-', ''), 24); -- the tokens of this claim start with it
	v_ids uuid[] := '{}';
	v_places int[] := '{}'; -- the index in v_visited of the channel of each row
	v_slots timestamptz[] := '{}';
	v_visited text[] := '{}';
	v_taken int[] := '{}';
	v_inflight int[] := '{}';
	v_posts text[] := '{}'; -- the newest known post of each channel
	v_unlisted text[] := '{}';
	v_next timestamptz[] := '{}';
	v_windows jsonb := '{}';
	v_hours text[] := '{}'; -- as io_hours of claim_from_group
	v_spent jsonb := '[]'; -- the picked rows of each group with quotas
	v_unpaid text[] := '{}'; -- channels with no money for their next row
	v_lease timestamptz;
	v_of_group int[] := '{}'; -- the index in v_platforms and v_rate_groups of the group of each channel
	v_platforms text[] := '{}';
	v_rate_groups text[] := '{}';
	v_calm boolean[] := '{}'; -- whether calls of each group may start at once
	v_read record;
	v_can_start_at timestamptz; -- from here to v_windowed: claimed_channels of v_visited
	v_open boolean[];
	v_targets text[];
	v_auth_refs text[];
	v_settings jsonb; -- an array
	v_on_unknown text[];
	v_at_once int[];
	v_waits timestamptz[];
	v_allowed timestamptz[];
	v_windowed boolean[];
	v_starts boolean[]; -- whether the call of each row starts
	v_deadline timestamptz;
	v_prefix text;
	v_number bigint := (1::bigint << 56) + (random() * (1::bigint << 58))::bigint; -- 15 hexadecimal digits
	v_group record;
	v_room int;
	v_picked record;
	v_fault text; -- the first group that failed, and its error
begin
	-- It commits without waiting for the disk, together with the rest of its transaction, unless it
	-- starts a call. If a server crash loses the claim, its calls did not start: start_call waits for the
	-- disk, and its commit comes after the claim.
	-- A group that fails is left out with a warning. If nothing else is claimed, its error is raised.
	-- Parts of a statement join workspaces, so that a cluster runs all of it on the node of the workspace: what reads
	-- no table would be sent to every node.
	-- Bitmap scans are off: the planner expects few rows because of row-level security and the three
	-- conditions, and would read and sort the whole queue of a channel for its first rows.
	perform autopost.require_argument('auth_refs', p_auth_refs is not null
		and array_position(p_auth_refs, null) is null);
	perform autopost.require_argument('run_id', p_run_id <> '');
	perform autopost.require_limit(p_limit);
	perform autopost.require_argument('capacity', jsonb_typeof(p_capacity) = 'array');
	if v_status <> 'active' or autopost.is_restored() then
		return;
	end if;
	perform set_config('synchronous_commit', 'off', true);
	for v_group in
		select g.platform, g.rate_group from autopost.ready_groups(p_workspace_id) g
		where g.ready_at <= v_now
		order by g.ready_at
	loop
		v_room := least(p_limit - cardinality(v_ids), case when p_capacity <> '[]' then
			autopost.room_in(p_capacity, p_workspace_id, v_group.platform, v_group.rate_group) end);
		continue when v_room <= 0;
		begin
			v_picked := autopost.claim_from_group(p_workspace_id, v_room, v_group.platform, v_group.rate_group,
				cardinality(v_visited), v_began, v_hours);
		exception
			when lock_not_available then
				continue;
			when others then -- a failing group must not stop the others
				v_fault := coalesce(v_fault, format('%s/%s: %s', v_group.platform, v_group.rate_group, sqlerrm));
				continue;
		end;
		v_ids := v_ids || v_picked.o_ids;
		v_slots := v_slots || v_picked.o_slots;
		v_places := v_places || v_picked.o_places;
		v_hours := v_picked.io_hours;
		v_platforms := v_platforms || v_group.platform;
		v_rate_groups := v_rate_groups || v_group.rate_group;
		v_calm := v_calm || v_picked.o_calm;
		v_visited := v_visited || v_picked.o_visited;
		v_of_group := v_of_group || array_fill(cardinality(v_platforms), array[cardinality(v_picked.o_visited)]);
		v_taken := v_taken || v_picked.o_taken;
		v_inflight := v_inflight || v_picked.o_inflight;
		v_posts := v_posts || v_picked.o_posts;
		v_unlisted := v_unlisted || v_picked.o_unlisted;
		v_next := v_next || array_fill(v_picked.o_next, array[cardinality(v_picked.o_visited)]);
		v_windows := v_windows || v_picked.o_windows;
		v_unpaid := v_unpaid || v_picked.o_unpaid;
		if v_picked.o_quotas is not null then
			v_spent := v_spent || jsonb_build_object('platform', v_group.platform, 'rate_group', v_group.rate_group,
				'picked', to_jsonb(v_picked));
		end if;
		exit when cardinality(v_ids) >= p_limit;
	end loop;
	if v_fault is not null then
		if v_ids = '{}' then
			raise exception 'claim of the group %', v_fault;
		end if;
		raise warning 'claim of the group %', v_fault;
	end if;
	if v_visited <> '{}' then
		v_read := autopost.claimed_channels(p_workspace_id, v_visited, v_taken, v_of_group, v_calm, p_auth_refs,
			v_windows, v_began);
		v_can_start_at := v_read.o_now;
		v_open := v_read.o_open;
		v_targets := v_read.o_targets;
		v_auth_refs := v_read.o_auth_refs;
		v_settings := v_read.o_settings;
		v_on_unknown := v_read.o_on_unknown;
		v_at_once := v_read.o_places;
		v_waits := v_read.o_waits;
		v_allowed := v_read.o_allowed;
		v_windowed := v_read.o_windowed;
		perform set_config('lock_timeout', '0', true); -- the rest waits only while a table gets longer
	end if;
	if v_ids <> '{}' then
		v_now := v_can_start_at;
		-- The answer has this order. Here a row is a few bytes.
		select array_agg(r.id), array_agg(r.place), array_agg(r.slot), array_agg(coalesce(v_open[r.place] and coalesce(
			r.slot between v_now - autopost.slot_tolerance() and v_now + autopost.start_lead(), true), false))
		into v_ids, v_places, v_slots, v_starts
		from (
			select u.id, u.place, u.slot from unnest(v_ids, v_places, v_slots) with ordinality u (id, place, slot, n)
			order by u.slot nulls first, v_visited[u.place], u.n) r;
		v_lease := v_now + autopost.setting_interval('sending_lease_seconds');
		v_deadline := autopost.call_deadline(v_lease, v_now, autopost.setting_interval('lease_margin_seconds'));
		v_prefix := autopost.uuid_v7_prefix(clock_timestamp()); -- as in new_id: events of one instant keep their order
		if true = any (v_starts) then
			perform set_config('synchronous_commit', v_durable, true);
		end if;
		return query
		with claimed as (
			update autopost.deliveries d
			set status = 'sending', attempt = d.attempt + 1, claimed_at = v_now, claimed_by = p_run_id,
				claim_token = v_secret || to_hex(2147483648 + u.n),
				sending_started_at = v_now, sending_lease_until = v_lease,
				call_begun_at = case when u.starts then v_now end, send_at = u.slot, updated_at = v_now
			from autopost.few(v_ids, null, v_places, v_slots, p_starts => v_starts) u
			where d.workspace_id = p_workspace_id and d.delivery_id between u.id and u.id
			returning d.delivery_id, d.message_id, d.channel_id, d.attempt, d.claim_token, d.sending_lease_until,
				d.send_at,
				d.rendered_text, d.render_meta,
				d.trace_id, d.unknown_outcomes, d.last_call_at, d.due_at, d.scheduled_for, d.call_begun_at, u.place, u.starts, u.n
		), logged as (
			insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt,
				result,
				meta)
			select w.workspace_id, (v_prefix || to_hex(v_number + b.n))::uuid, b.delivery_id, b.message_id,
				b.channel_id,
				v_now, 'send_attempt', b.attempt, 'ok',
				autopost.start_meta(b.delivery_id, p_run_id, b.send_at, b.trace_id)
			from autopost.workspaces w
			-- The workspace is read once: its column fixes the order of the join.
			cross join lateral (select x.* from claimed x where x.starts and w.workspace_id <> '' offset 0) b
			where w.workspace_id = p_workspace_id
		), contents as materialized ( -- each message is read once
			select m.message_id, m.payload
			from (select distinct x.message_id from claimed x) u
			cross join lateral (
				select m.message_id, m.payload from autopost.messages m
				where m.workspace_id = p_workspace_id and m.message_id = u.message_id limit 1) m
		)
		select p_workspace_id, d.delivery_id, d.message_id, d.channel_id, v_platforms[v_of_group[d.place]],
			v_targets[d.place], v_auth_refs[d.place], v_rate_groups[v_of_group[d.place]], d.attempt, d.claim_token,
			d.sending_lease_until, d.send_at, d.rendered_text, d.render_meta, d.payload, v_settings -> (d.place - 1),
			d.trace_id, v_on_unknown[d.place], d.unknown_outcomes, d.last_call_at, v_posts[d.place],
			case when d.unknown_outcomes > 0 then autopost.known_posts(p_workspace_id, d.channel_id, d.delivery_id,
				d.last_call_at) end, d.due_at, d.scheduled_for, d.call_begun_at, case when d.starts then v_deadline end
		from autopost.workspaces w
		cross join lateral (
			select x.*, m.payload
			from claimed x
			-- It has no unmatched row; it is never a nested loop.
			full join contents m on m.message_id = x.message_id
			where w.workspace_id <> '' offset 0) d
		where w.workspace_id = p_workspace_id
		order by d.n;
	end if;
	if v_visited <> '{}' then
		perform autopost.update_gates(p_workspace_id, v_visited, v_inflight, v_unlisted, v_taken, v_next, v_windows,
			v_at_once, v_waits, v_allowed, v_windowed);
	end if;
	if v_unpaid <> '{}' then
		perform autopost.leave_to_budget(p_workspace_id, v_unpaid);
	end if;
	if v_spent <> '[]' then
		perform autopost.spend_quota(p_workspace_id, s.value ->> 'platform', s.value ->> 'rate_group',
			array(select jsonb_array_elements_text(s.value -> 'picked' -> 'o_quotas')),
			array(select jsonb_array_elements_text(s.value -> 'picked' -> 'o_visited')),
				array(select jsonb_array_elements_text(s.value -> 'picked' -> 'o_ids'))::uuid[],
				(s.value -> 'picked' ->> 'o_denied')::int)
		from jsonb_array_elements(v_spent) s;
	end if;
end
$$;
