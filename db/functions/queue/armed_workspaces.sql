create or replace function autopost.group_ready_at(p_gate timestamptz, p_limit autopost.platform_limits,
	p_ahead interval) returns timestamptz
language plpgsql immutable parallel safe
as $$
-- Purpose: when a claim of a rate group may find a delivery, by its earliest gate, cooldown, quota,
--          slots (reserved p_ahead) and the pause between probes of its breaker.
begin
	return greatest(p_gate, p_limit.cooldown_until, p_limit.quota_until,
		case when p_limit.breaker_opened_at is not null then p_limit.probe_at end,
		case when p_limit.rate_rps > 0 then p_limit.next_allowed_at - p_ahead end);
end
$$;

create or replace function autopost.ready_groups(p_workspace_id text) returns table (platform text, rate_group text,
	ready_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the rate groups with armed gates and when a claim of each may find a delivery. One probe
--          of channel_gates_armed per group, for any number of gates.
-- Reads:   channel_gates, platform_limits.
declare
	v_ahead interval := autopost.slot_horizon();
begin
	return query
	with recursive grp as (
		(select g.platform, g.rate_group, g.ready_at from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.ready_at < 'infinity'
		order by g.platform, g.rate_group, g.ready_at limit 1)
		union all
		select n.platform, n.rate_group, n.ready_at
		from grp, lateral (
			select g.platform, g.rate_group, g.ready_at from autopost.channel_gates g
			where g.workspace_id = p_workspace_id and g.ready_at < 'infinity'
			and (g.platform, g.rate_group) > (grp.platform, grp.rate_group)
			order by g.platform, g.rate_group, g.ready_at limit 1) n
	)
	select grp.platform, grp.rate_group, autopost.group_ready_at(grp.ready_at, l.row, v_ahead)
	from grp
	left join lateral (
		select row(l.*)::autopost.platform_limits from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = grp.platform
			and l.rate_group = grp.rate_group limit 1) l (row) on true;
end
$$;

create or replace function autopost.room_in(p_capacity jsonb, p_workspace_id text, p_platform text,
	p_rate_group text) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: the free capacity of a group by p_capacity, [{"workspace_id", "platform", "rate_group",
--          "room"}]. A missing name matches all; the smallest match wins; null without a match.
begin
	return (
		select min((r.value ->> 'room')::int)
		from jsonb_array_elements(p_capacity) r
		where coalesce(r.value ->> 'workspace_id', p_workspace_id) = p_workspace_id
		and coalesce(r.value ->> 'platform', p_platform) = p_platform
		and coalesce(r.value ->> 'rate_group', p_rate_group) = p_rate_group);
end
$$;

create or replace function autopost.limits_of(p_workspace_ids text[]) returns setof autopost.platform_limits
language plpgsql stable
as $$
-- Purpose: the limits of the rate groups of these workspaces. A cluster does not take an array of rows as a
--          variable of the caller, whose statements are over all workspaces.
-- Reads:   platform_limits.
begin
	return query
	select l.* from autopost.platform_limits l where l.workspace_id = any (p_workspace_ids);
end
$$;

create or replace function autopost.armed_parts(p_capacity jsonb, p_by timestamptz default null)
	returns table (workspace_id text, platform text, ready_at timestamptz)
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: the claim keys (workspace and platform) with armed gates, of active workspaces that the
--          caller may act for, and when a claim may find a delivery. Groups without capacity do not
--          count. A group with reserved slots is due after half of that time, so that a claim takes
--          many deliveries. A key is returned again for groups of another page. p_by: only some that are
--          ready then, or no row.
--          It reads channel_gates_armed in pages: the first gates after the last group of the page before.
--          So a group with very many gates costs one page. The planner overestimates row security and
--          would read and sort all gates, hence the two settings. The arrays of workspaces are plain variables: a
--          cluster plans them as constants and asks only the nodes of these workspaces.
-- Reads:   channel_gates, platform_limits, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_ahead interval := autopost.slot_horizon() / 2;
	v_page constant int := 500;
	v_workspaces text[] := '{""}';
	v_platforms text[] := '{""}';
	v_groups text[] := '{""}';
	v_ready timestamptz[];
	v_gates int; -- of the page
	v_last int := 1;
	v_active text[];
begin
	loop
		select array_agg(p.workspace_id), array_agg(p.platform), array_agg(p.rate_group), array_agg(p.ready_at), sum(p.gates)
		into v_workspaces, v_platforms, v_groups, v_ready, v_gates
		from (
			select x.workspace_id, x.platform, x.rate_group, min(x.ready_at) as ready_at, count(*) as gates
			from (
				select g.workspace_id, g.platform, g.rate_group, g.ready_at from autopost.channel_gates g
				where g.ready_at < 'infinity' and (v_mine is null or g.workspace_id = any (v_mine))
				and (g.workspace_id, g.platform, g.rate_group)
					> (v_workspaces[v_last], v_platforms[v_last], v_groups[v_last])
				order by g.workspace_id, g.platform, g.rate_group, g.ready_at
				limit v_page) x
			group by x.workspace_id, x.platform, x.rate_group
			order by x.workspace_id, x.platform, x.rate_group) p;
		exit when v_workspaces is null;
		v_last := cardinality(v_workspaces);
		v_active := array(select w.workspace_id from autopost.workspaces w
			where w.workspace_id = any (v_workspaces) and w.status = 'active');
		return query
		select g.workspace_id, g.platform, min(r.at)
		from unnest(v_workspaces, v_platforms, v_groups, v_ready) g (workspace_id, platform, rate_group, ready_at)
		left join autopost.limits_of(v_active) l on l.workspace_id = g.workspace_id and l.platform = g.platform
			and l.rate_group = g.rate_group
		cross join lateral (select autopost.group_ready_at(g.ready_at, l, v_ahead) as at) r
		where g.workspace_id = any (v_active) and (p_capacity = '[]'
			or coalesce(autopost.room_in(p_capacity, g.workspace_id, g.platform, g.rate_group) > 0, true))
		and (p_by is null or r.at <= p_by)
		group by g.workspace_id, g.platform;
		exit when v_gates < v_page or p_by is not null and found;
	end loop;
end
$$;

create or replace function autopost.armed_workspaces() returns table (workspace_id text, ready_at timestamptz)
language sql stable
as $$
-- Purpose: the workspaces of armed_parts for a caller with capacity for all groups.
select r.workspace_id, min(r.ready_at) from autopost.armed_parts('[]') r
group by r.workspace_id
$$;

create or replace function autopost.ready_ring(p_after text, p_limit int) returns setof text
language plpgsql stable
as $$
-- Purpose: at most p_limit ready workspaces, in the order of a ring of their ids that starts after
--          p_after. A caller that passes the last served one serves each within one round.
declare
	v_now timestamptz := autopost.now_ts();
begin
	return query
	select r.workspace_id from autopost.armed_workspaces() r
	where r.ready_at <= v_now
	order by r.workspace_id <= p_after, r.workspace_id
	limit p_limit;
end
$$;

create or replace function autopost.dispatch_scope() returns text
language plpgsql stable
as $$
-- Purpose: the scope of the caller's dispatch lease: one for roles with all workspaces, else one
--          per role.
begin
	return case when autopost.may_access('*') then '*' else autopost.caller_role() end;
end
$$;

create or replace function autopost.lock_turn(p_scope text) returns void
language plpgsql
as $$
-- Purpose: serializes begin_dispatch and end_dispatch of a scope. The lock belongs to the
--          transaction, so it works through poolers.
begin
	perform autopost.take_turn('dispatch|' || p_scope);
end
$$;
