create or replace function autopost.claim_within(p_workspace_id text, p_run_id text, p_limit int, p_capacity jsonb)
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '100ms'
	set enable_bitmapscan = off
as $$
-- Purpose: moves due deliveries to status sending and leases them to p_run_id, each with its own
--          token. Only this function raises attempt. p_capacity: [{"platform", "rate_group",
--          "room"}] limits the rows of a group, so that no group takes all senders of the caller.
--          An entry without a name applies to all groups; the smallest limit counts. [] means no
--          limit. A channel gives its due rows by greatest(not_before, scheduled_for); a retry keeps
--          its place.
-- It commits without waiting for the disk, together with the rest of its transaction. If a server
-- crash loses the claim, its calls did not start: start_call waits for the disk, and its commit
-- comes after the claim.
-- A group that fails is left out with a warning. If nothing else is claimed, its error is raised.
-- Bitmap scans are off: the planner expects few rows because of row-level security and the three
-- conditions, and would read and sort the whole queue of a channel for its first rows.
-- Returns: at most p_limit rows (1 to 1000) that may start within a second, or at send_at if it is
--          set. No rows is a normal answer. known_posts is set only after an unknown outcome.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   only with SKIP LOCKED; see claim_from_group. PostgreSQL still waits for a row that
--          changes while it is being locked. A group with a long wait is left to the next claim, so
--          no deadlock can arise.
-- Reads:   messages, channels, cluster_identity.
-- Writes:  deliveries, channels, platform_limits, channel_gates, quota_uses, charges.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := autopost.now_ts();
	v_salt text := gen_random_uuid();
	v_ids uuid[] := '{}';
	v_slots timestamptz[] := '{}';
	v_visited jsonb := '{}';
	v_windows jsonb := '{}';
	v_spent jsonb := '[]'; -- the picked rows of each group with quotas
	v_unpaid text[] := '{}'; -- channels with no money for their next row
	v_lease timestamptz;
	v_group record;
	v_room int;
	v_picked record;
	v_fault text; -- the first group that failed, and its error
begin
	perform autopost.require_argument('run_id', p_run_id <> '');
	if coalesce(p_limit not between 1 and 1000, true) then
		perform autopost.raise_argument('limit',
			format('must be between 1 and 1000, got %s', coalesce(p_limit::text, 'null')),
			'pass a limit from 1 to 1000');
	end if;
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
		v_room := least(p_limit - cardinality(v_ids),
			autopost.room_in(p_capacity, p_workspace_id, v_group.platform, v_group.rate_group));
		continue when v_room <= 0;
		begin
			v_picked := autopost.claim_from_group(p_workspace_id, v_room, v_group.platform, v_group.rate_group);
		exception
			when lock_not_available then
				continue;
			when others then -- a failing group must not stop the others
				v_fault := coalesce(v_fault, format('%s/%s: %s', v_group.platform, v_group.rate_group, sqlerrm));
				continue;
		end;
		v_ids := v_ids || v_picked.o_ids;
		v_slots := v_slots || v_picked.o_slots;
		v_visited := v_visited || v_picked.o_visited;
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
	v_now := autopost.now_ts();
	v_lease := v_now + autopost.setting_interval('sending_lease_seconds');
	return query
	with claimed as (
		update autopost.deliveries d
		set status = 'sending', attempt = d.attempt + 1, claimed_at = v_now, claimed_by = p_run_id,
			claim_token = md5(v_salt || d.delivery_id),
			sending_started_at = v_now, sending_lease_until = v_lease, call_begun_at = null,
			send_at = u.slot, updated_at = v_now
		from autopost.few(v_ids, null, null, v_slots) u
		where d.workspace_id = p_workspace_id and d.delivery_id = u.id
		returning d.delivery_id, d.message_id, d.channel_id, d.attempt, d.claim_token, d.sending_lease_until, d.send_at,
			d.rendered_text, d.render_meta,
			d.trace_id, d.unknown_outcomes, d.last_call_at, d.due_at, d.scheduled_for
	)
	select p_workspace_id, d.delivery_id, d.message_id, d.channel_id, c.platform, c.target_id,
		c.auth_ref, c.rate_group,
		d.attempt, d.claim_token, d.sending_lease_until, d.send_at, d.rendered_text, d.render_meta, m.payload,
			c.settings, d.trace_id,
		c.on_unknown, d.unknown_outcomes, d.last_call_at, c.last_provider_message_id,
		case when d.unknown_outcomes > 0 then autopost.known_posts(p_workspace_id, d.channel_id, d.delivery_id,
			d.last_call_at) end, d.due_at, d.scheduled_for
	from claimed d
	-- Each channel and message is read once. A full join has no unmatched row here; it is never a nested loop.
	full join (
		select c.channel_id, c.platform, c.target_id, coalesce(a.auth_ref, c.auth_ref) as auth_ref, c.rate_group, c.settings,
			c.on_unknown, g.last_provider_message_id
		from (select distinct x.channel_id from claimed x) u
		cross join lateral (
			select c.channel_id, c.platform, c.target_id, c.auth_ref, c.rate_group, c.settings, c.on_unknown from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c
		cross join lateral (
			select g.last_provider_message_id from autopost.channel_gates g
			where g.workspace_id = p_workspace_id and g.channel_id = u.channel_id limit 1) g
		left join lateral (
			select a.auth_ref from autopost.channel_auth a
			where a.workspace_id = p_workspace_id and a.channel_id = u.channel_id limit 1) a on true) c
		on c.channel_id = d.channel_id
	full join (
		select m.message_id, m.payload
		from (select distinct x.message_id from claimed x) u
		cross join lateral (
			select m.message_id, m.payload from autopost.messages m
			where m.workspace_id = p_workspace_id and m.message_id = u.message_id limit 1) m) m
		on m.message_id = d.message_id
	order by d.send_at nulls first, d.channel_id, d.due_at, d.delivery_id;
	perform autopost.update_gates(p_workspace_id, v_visited, v_windows) where v_visited <> '{}';
	perform autopost.leave_to_budget(p_workspace_id, v_unpaid) where v_unpaid <> '{}';
	perform autopost.spend_quota(p_workspace_id, s.value ->> 'platform', s.value ->> 'rate_group',
		array(select jsonb_array_elements_text(s.value -> 'picked' -> 'o_quotas')),
		array(select k.key from jsonb_object_keys(s.value -> 'picked' -> 'o_visited') k (key)),
			array(select jsonb_array_elements_text(s.value -> 'picked' -> 'o_ids'))::uuid[],
			(s.value -> 'picked' ->> 'o_denied')::int)
	from jsonb_array_elements(v_spent) s;
end
$$;
