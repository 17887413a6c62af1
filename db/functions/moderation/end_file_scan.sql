create or replace function autopost.end_file_scan(p_workspace_id text, p_source_id text, p_refused text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a successful scan of a folder: the next one is due after interval_seconds. Refusals of files other
--          than p_refused are forgotten. Only the engine may call it.
-- Returns: {"applied": true}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors.
-- Reads:   pull_sources.
-- Writes:  pull_cursors, file_refusals.
declare
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('refused', p_refused is not null);
	v_now := autopost.now_ts();
	update autopost.pull_cursors c
	set failures = 0, last_error = null, updated_at = v_now, last_poll_at = v_now, leased_by
		= null,
		leased_until = null, next_poll_at = v_now + autopost.poll_interval(p_workspace_id, p_source_id,
			null)
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	delete from autopost.file_refusals r
	where r.workspace_id = p_workspace_id and r.source_id = p_source_id and r.path <> all (p_refused);
	return '{"applied": true}';
end
$$;
