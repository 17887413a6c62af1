create or replace function autopost.touch_run(p_run_id text, p_host text default null, p_ended boolean default false)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records the heartbeat of a daemon on the machine p_host; p_ended: the last one of an
--          orderly stop. The leases of a run without a heartbeat for run_silence are over. A run
--          that never had a heartbeat keeps its full leases.
-- Writes:  dispatch_runs; share_heartbeat.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.require_argument('run_id', p_run_id <> ''),
		autopost.require_argument('ended', p_ended is not null);
	insert into autopost.dispatch_runs as r (run_id, started_at, seen_at, host, ended_at)
	values (p_run_id, v_now, v_now, left(p_host, 100), case when p_ended then v_now end)
	on conflict (run_id) do update set seen_at = excluded.seen_at, host = coalesce(excluded.host, r.host),
		ended_at = excluded.ended_at;
	perform autopost.share_heartbeat(p_run_id, p_host, p_ended);
	return '{"applied": true}';
end
$$;
