create or replace function autopost.list_daemons()
returns table (run_id text, seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists up to 100 daemons seen during the last day, latest first. A daemon is alive while
--          its dispatcher's heartbeat is recent and its run has not ended. Its monitor reports a
--          digest of its configuration, the lead of its clock over the database's, and its failing
--          duties.
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
