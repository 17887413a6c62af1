-- The nodes of a Citus cluster, for a database that is not one. On a cluster distribute.sql replaces these functions.

create or replace function autopost.workspaces_here() returns text[]
language plpgsql stable
as $$
-- Purpose: the workspaces that lists across workspaces show on this node; null for all. On a worker of a
--          Citus cluster these are the workspaces of the node, on its coordinator those of the nodes that
--          answer. So a node that is down stops its own workspaces alone. Call it after
--          enter_all_workspaces.
begin
	return null;
end
$$;

create or replace function autopost.served_workspaces() returns text[]
language plpgsql stable
as $$
-- Purpose: own_workspaces of workspaces_here: those that a daemon at this node serves for the caller; null for all.
-- Reads:   as own_workspaces and workspaces_here.
declare
	v_mine text[] := autopost.own_workspaces();
	v_here text[] := autopost.workspaces_here();
begin
	if v_mine is null or v_here is null then
		return coalesce(v_mine, v_here);
	end if;
	return array(select m.id from unnest(v_mine) m (id) where m.id = any (v_here));
end
$$;

create or replace function autopost.share_heartbeat(p_run_id text, p_host text, p_ended boolean) returns void
language plpgsql
as $$
-- Purpose: records the heartbeat of a daemon at the coordinator of a Citus cluster on each node that
--          answers, because each node judges the leases of its workspaces. Does nothing elsewhere.
begin
	perform p_run_id, p_host, p_ended;
end
$$;

create or replace function autopost.daemons_of_node()
	returns table (run_id text, seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
language plpgsql stable
as $$
-- Purpose: list_daemons of this node of a cluster; without a cluster, of the installation.
-- Reads:   dispatch_runs, monitor_duties, settings.
declare
	v_now timestamptz := autopost.now_ts();
begin
	return query
	select r.run_id, r.seen_at, r.ended_at is null and r.seen_at > v_now - autopost.run_silence(), d.config, d.skew_ms,
		coalesce(d.failing, '{}')
	from autopost.dispatch_runs r
	left join lateral (
		select (array_agg(m.config order by m.reported_at desc))[1] as config,
			(array_agg(m.skew_ms order by m.reported_at desc))[1] as skew_ms,
			array_agg(m.duty order by m.duty) filter (where m.failures > 0
				and m.duty not like 'stage:%') as failing
		from autopost.monitor_duties m where m.run_id = r.run_id) d on true
	where r.seen_at > v_now - interval '1 day'
	order by r.seen_at desc, r.run_id
	limit 100;
end
$$;

create or replace function autopost.daemons_of_nodes()
	returns table (run_id text, seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
language plpgsql volatile
as $$
-- Purpose: the daemons of all nodes of a Citus cluster that answer; elsewhere daemons_of_node.
-- Reads:   as daemons_of_node.
begin
	return query select d.run_id, d.seen_at, d.alive, d.config, d.skew_ms, d.failing from autopost.daemons_of_node() d;
end
$$;
