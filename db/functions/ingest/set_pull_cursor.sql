create or replace function autopost.set_pull_cursor(p_workspace_id text, p_source_id text, p_cursor jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Ends a poll that went well: the cursor that the last chunk answered, and the next poll after the source's interval.
-- Writes: pull_cursors.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('source_id', p_source_id <> ''), autopost.require('cursor', jsonb_typeof(p_cursor) = 'object');
	update autopost.pull_cursors c
	set cursor_json = p_cursor, failures = 0, last_error = null, updated_at = autopost.now_ts(),
		next_poll_at = autopost.now_ts() + coalesce(autopost.poll_interval(p_workspace_id, p_source_id), interval '5 minutes')
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	return jsonb_build_object('applied', found);
end
$$;
