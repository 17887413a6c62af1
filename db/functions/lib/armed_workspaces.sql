create or replace function autopost.group_ready_at(p_gate timestamptz, p_limit autopost.platform_limits, p_ahead interval) returns timestamptz
language sql immutable parallel safe
as $$
-- When a claim of a rate group could give something, by its earliest gate and its row, if it has one: not while it is cooling down, out of quota
-- or out of slots (p_ahead: how far ahead they are reserved), or between two probes of an open breaker.
select greatest(p_gate, p_limit.cooldown_until, p_limit.quota_until, case when p_limit.breaker_opened_at is not null then p_limit.probe_at end,
	case when p_limit.rate_rps > 0 then p_limit.next_allowed_at - p_ahead end)
$$;

create or replace function autopost.ready_groups(p_workspace_id text) returns table (platform text, rate_group text, ready_at timestamptz)
language plpgsql stable
as $$
-- The rate groups of a workspace in which something waits for its time, and when a claim of each could give something. One probe of
-- channel_gates_armed a group, however many gates it has.
-- Reads: channel_gates, platform_limits, settings.
declare
	v_ahead interval := autopost.setting_interval('slot_horizon_ms');
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
		select l from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = grp.platform and l.rate_group = grp.rate_group limit 1) l (row) on true;
end
$$;

create or replace function autopost.room_in(p_rooms jsonb, p_workspace_id text, p_platform text, p_rate_group text) returns int
language sql immutable parallel safe
as $$
-- How much room p_rooms leaves a group: [{"workspace_id", "platform", "rate_group", "room"}], a name that is missing means any, the least counts. Null: nothing is said.
select min((r.value ->> 'room')::int)
from jsonb_array_elements(p_rooms) r
where coalesce(r.value ->> 'workspace_id', p_workspace_id) = p_workspace_id
and coalesce(r.value ->> 'platform', p_platform) = p_platform
and coalesce(r.value ->> 'rate_group', p_rate_group) = p_rate_group
$$;

create or replace function autopost.armed_parts(p_rooms jsonb) returns table (workspace_id text, platform text, ready_at timestamptz)
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- The platforms of active workspaces for which something waits for its time, of those that the caller may speak for, and when a claim could give
-- something: the earliest gate of a group that is neither cooling down nor out of slots, nor without room in p_rooms. Looks across workspaces: none is entered.
-- A group whose slots are taken ahead is named when half of that time is over: a claim then gives many, where it gave one each time that a slot came free.
-- One probe of channel_gates_armed a rate group; a workspace where nothing waits is not looked at. The planner takes the row-level
-- security for a rare match and would rather read and sort all gates for each probe, hence the two settings.
-- Reads: channel_gates, platform_limits, workspaces, settings.
declare
	v_all boolean := autopost.may_speak_for('*');
	v_ahead interval := autopost.setting_interval('slot_horizon_ms') / 2;
begin
	return query
	with recursive grp as (
		(select g.workspace_id, g.platform, g.rate_group, g.ready_at from autopost.channel_gates g
		where g.ready_at < 'infinity'
		order by g.workspace_id, g.platform, g.rate_group, g.ready_at limit 1)
		union all
		select n.workspace_id, n.platform, n.rate_group, n.ready_at
		from grp, lateral (
			select g.workspace_id, g.platform, g.rate_group, g.ready_at from autopost.channel_gates g
			where g.ready_at < 'infinity'
			and (g.workspace_id, g.platform, g.rate_group) > (grp.workspace_id, grp.platform, grp.rate_group)
			order by g.workspace_id, g.platform, g.rate_group, g.ready_at limit 1) n
	)
	select grp.workspace_id, grp.platform, min(autopost.group_ready_at(grp.ready_at, l.row, v_ahead))
	from grp
	cross join lateral (select w.status from autopost.workspaces w where w.workspace_id = grp.workspace_id limit 1) w
	left join lateral (
		select l from autopost.platform_limits l
		where l.workspace_id = grp.workspace_id and l.platform = grp.platform and l.rate_group = grp.rate_group limit 1) l (row) on true
	where w.status = 'active' and (p_rooms = '[]' or coalesce(autopost.room_in(p_rooms, grp.workspace_id, grp.platform, grp.rate_group) > 0, true)) and (v_all or autopost.may_speak_for(grp.workspace_id))
	group by grp.workspace_id, grp.platform;
end
$$;

create or replace function autopost.armed_workspaces() returns table (workspace_id text, ready_at timestamptz)
language sql stable
as $$
-- The workspaces of armed_parts, for who has room for all.
select r.workspace_id, min(r.ready_at) from autopost.armed_parts('[]') r
group by r.workspace_id
$$;

create or replace function autopost.ready_ring(p_after text, p_limit int) returns setof text
language plpgsql stable
as $$
-- At most p_limit workspaces for which a claim could give something now: a ring in the order of their ids, from the one after p_after
-- on. Who asks again with the last one that was served keeps none of them waiting for longer than one turn of the ring.
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
-- Whose turn and lease the caller shares: one of all who speak for every workspace; else the role's own, so that a tenant's
-- orchestrator holds up nobody else's.
begin
	return case when autopost.may_speak_for('*') then '*' else autopost.speaker() end;
end
$$;

create or replace function autopost.lock_turn(p_scope text) returns void
language plpgsql
as $$
-- One begin or end of a scope at a time. Of the transaction, not of the session: it works through poolers.
begin
	perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('autopost.dispatch_cursor ' || p_scope, 0));
end
$$;
