create or replace function autopost.report_duty(p_run_id text, p_duty text, p_at timestamptz, p_config text,
	p_error text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records the result of a monitor's duty. p_error is null after success; p_at is the
--          daemon's clock, p_config a digest of the configuration that daemons must share. Only the
--          engine may call it.
-- Writes:  monitor_duties.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.require_argument('run_id', p_run_id <> ''), autopost.require_argument('duty', p_duty <> ''),
		autopost.require_argument('at', p_at is not null), autopost.require_argument('config', p_config is not null);
	insert into autopost.monitor_duties as d (run_id, duty, reported_at, done_at, failures, error, skew_ms, config)
	values (p_run_id, p_duty, v_now, case when p_error is null then v_now end, (p_error is not null)::int,
		left(autopost.redact(p_error), 1000),
		round(extract(epoch from p_at - v_now) * 1000), p_config)
	on conflict (run_id, duty) do update
	set reported_at = excluded.reported_at, done_at = coalesce(excluded.done_at, d.done_at), error = excluded.error,
		skew_ms = excluded.skew_ms, config = excluded.config,
		failures = case when excluded.failures = 0 then 0 else d.failures + 1 end;
	return '{"applied": true}';
end
$$;
