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
--          p_windows: windows_of at p_windows_at or later. p_auth_refs: null or empty to start no call.
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
			where a.workspace_id = p_workspace_id and a.channel_id = u.channel_id and u.taken > 0 limit 1) a on true
		left join lateral (
			select c.target_id, c.auth_ref, c.settings, c.on_unknown, case when c.enabled then c.max_parallel else 0 end as places,
				greatest(c.paused_until, c.cooldown_until, c.credential_until, c.held_until) as waits,
				case when c.effective_rps > 0 then c.next_allowed_at end as allowed, c.window_mode = 'windowed' as windowed,
				c.enabled and coalesce(greatest(c.paused_until, c.held_until, c.cooldown_until) <= v_before, true) as open
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id and u.taken > 0
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
	if true = any (o_open) is not true then
		return;
	end if;
	if o_now < p_windows_at or o_now >= p_windows_at + autopost.slot_horizon() then
		p_windows := autopost.windows_of(p_workspace_id, p_channel_ids, o_now);
	end if;
	if p_windows <> '{}' then
		o_open := array(select u.open and not p_windows ? u.channel_id
			from unnest(p_channel_ids, o_open) with ordinality u (channel_id, open, n) order by u.n);
	end if;
end
$$;

create or replace function autopost.claim_within(p_workspace_id text, p_run_id text, p_limit int, p_capacity jsonb)
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves due deliveries to status sending and leases them to p_run_id, each with its own
--          token. Only the claim raises attempt. p_capacity: [{"platform", "rate_group", "room"}]
--          limits the rows of a group, so that no group takes all senders of the caller. An entry
--          without a name applies to all groups; the smallest limit counts. [] means no limit. A
--          channel gives its due rows by greatest(not_before, scheduled_for); a retry keeps its place.
-- Returns: at most p_limit rows (1 to 1000) that may start within a second, or at send_at if it is
--          set. No rows is a normal answer. known_posts is set only after an unknown outcome.
--          call_begun_at and deadline are null.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   as claim_and_start.
-- Writes:  as claim_and_start.
begin
	return query select c.* from autopost.claim_and_start(p_workspace_id, p_run_id, p_limit, p_capacity, '{}') c;
end
$$;
