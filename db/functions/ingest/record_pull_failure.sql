create or replace function autopost.record_pull_failure(p_workspace_id text, p_source_id text, p_code text, p_message text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Ends a poll that failed: the cursor stays, the next poll comes later with every failure (interval times 1, 2, 4 … at most an hour
-- more), the first of a row and every change of code leaves an event.
-- Writes: pull_cursors, events(ingress_config_error).
declare
	v_error jsonb := jsonb_build_object('code', p_code, 'message', autopost.redact(left(p_message, 500)));
	v_before autopost.pull_cursors;
	v_interval interval;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('source_id', p_source_id <> ''), autopost.require('code', p_code <> '');
	select c.* into v_before from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id
	for no key update of c;
	v_interval := coalesce(autopost.poll_interval(p_workspace_id, p_source_id), interval '5 minutes');
	update autopost.pull_cursors c
	set failures = c.failures + 1, last_error = v_error, updated_at = autopost.now_ts(),
		next_poll_at = autopost.now_ts() + least(v_interval * 2 ^ least(c.failures, 10), v_interval + interval '1 hour')
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	if v_before.failures = 0 or v_before.last_error ->> 'code' is distinct from p_code then
		perform autopost.emit_note(p_workspace_id, 'ingress_config_error', 'error', null, null, v_error, jsonb_build_object('source_id', p_source_id));
	end if;
	return '{"applied": true}';
end
$$;
