create or replace function autopost.armed_workspaces() returns table (workspace_id text, ready_at timestamptz)
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- The active workspaces in which something waits for its time, of those that the caller may speak for, and when a claim could give
-- something: the earliest gate of a group that is neither cooling down nor out of slots. Looks across workspaces: none is entered.
-- One probe of channel_gates_armed a rate group; a workspace where nothing waits is not looked at. The planner takes the row-level
-- security for a rare match and would rather read and sort all gates for each probe, hence the two settings.
-- Reads: channel_gates, platform_limits, workspaces, settings.
declare
	v_all boolean := autopost.may_speak_for('*');
	v_ahead interval := autopost.setting_interval('slot_horizon_ms');
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
	select grp.workspace_id, min(greatest(grp.ready_at, l.cooldown_until, case when l.rate_rps > 0 then l.next_allowed_at - v_ahead end))
	from grp
	cross join lateral (select w.status from autopost.workspaces w where w.workspace_id = grp.workspace_id limit 1) w
	left join lateral (
		select l.cooldown_until, l.rate_rps, l.next_allowed_at from autopost.platform_limits l
		where l.workspace_id = grp.workspace_id and l.platform = grp.platform and l.rate_group = grp.rate_group limit 1) l on true
	where w.status = 'active' and (v_all or autopost.may_speak_for(grp.workspace_id))
	group by grp.workspace_id;
end
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
