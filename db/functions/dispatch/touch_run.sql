create or replace function autopost.touch_run(p_run_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The heartbeat of a daemon's run. Leases of a run that has been silent for run_silence_seconds are over; a run that never had a
-- heartbeat keeps its full leases.
-- Writes: dispatch_runs.
begin
	perform autopost.require('run_id', p_run_id <> '');
	insert into autopost.dispatch_runs (run_id, started_at, seen_at)
	values (p_run_id, autopost.now_ts(), autopost.now_ts())
	on conflict (run_id) do update set seen_at = excluded.seen_at;
	return '{"applied": true}';
end
$$;
