create or replace function autopost.list_daemons()
returns table (run_id text, seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
language plpgsql volatile security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists up to 100 daemons seen during the last day, latest first. A daemon is alive while
--          its dispatcher's heartbeat is recent and its run has not ended. Its monitor reports a
--          digest of its configuration, the lead of its clock over the database's, and its failing
--          duties. In a cluster: the daemons of all nodes that answer.
-- Reads:   as daemons_of_nodes.
begin
	return query
	select d.run_id, d.seen_at, d.alive, d.config, d.skew_ms, d.failing from autopost.daemons_of_nodes() d
	order by d.seen_at desc, d.run_id
	limit 100;
end
$$;
