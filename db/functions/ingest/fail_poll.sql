create or replace function autopost.fail_poll(p_workspace_id text, p_source_id text, p_failure jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a failed poll. The cursor stays. Each failure doubles the interval, up to one more
--          hour, and never polls before the time that the source asks for. The first failure and
--          each change of the code leave an event. A source that reports that it is gone is
--          disabled. p_failure: {"code", "message", "retry_after_seconds", "gone"}.
-- Returns: {"applied": true, "stopped"}, or {"applied": false} for an unknown source.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_sources, pull_cursors, in this order.
-- Writes:  pull_sources, pull_cursors, events (ingress_config_error).
declare
	v_error jsonb;
	v_gone boolean := coalesce(p_failure -> 'gone' = 'true', false);
	v_before autopost.pull_cursors;
	v_interval interval;
	v_now timestamptz;
	v_next_at timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('source_id', p_source_id <> ''),
		autopost.require_argument('failure', p_failure ->> 'code' <> '');
	v_error := jsonb_build_object('code', p_failure -> 'code', 'message',
		autopost.redact(left(p_failure ->> 'message', 500)));
	perform 1 from autopost.pull_sources s where s.workspace_id = p_workspace_id
		and s.source_id = p_source_id for no key update of s;
	select c.* into v_before from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id
	for no key update of c;
	if v_before.source_id is null then
		return '{"applied": false}';
	end if;
	v_now := autopost.now_ts();
	v_interval := autopost.poll_interval(p_workspace_id, p_source_id, null);
	v_next_at := v_now + greatest(
		least(v_interval * 2 ^ least(v_before.failures, 10), v_interval + interval '1 hour'),
		make_interval(secs => case when jsonb_typeof(p_failure -> 'retry_after_seconds') = 'number' then
			least((p_failure ->> 'retry_after_seconds')::numeric, autopost.pull_hint_max()) else 0 end::float8));
	update autopost.pull_cursors c
	set failures = c.failures + 1, last_error = v_error, updated_at = v_now, last_poll_at = v_now, leased_by = null,
		next_poll_at = v_next_at
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	if v_gone then
		update autopost.pull_sources s
		set enabled = false, stopped = v_error || jsonb_build_object('at', v_now), updated_at = v_now
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id;
	end if;
	if v_gone or v_before.failures = 0 or v_before.last_error ->> 'code' is distinct from p_failure ->> 'code' then
		perform autopost.emit_note(p_workspace_id, 'ingress_config_error', 'error', null, null, v_error,
			jsonb_build_object('source_id', p_source_id, 'stopped', nullif(v_gone, false)));
	end if;
	return jsonb_build_object('applied', true, 'stopped', v_gone);
end
$$;
