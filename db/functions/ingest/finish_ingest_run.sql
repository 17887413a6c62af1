create or replace function autopost.finish_ingest_run(p_workspace_id text, p_run_id uuid, p_stats jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a run and adds the numbers of p_stats to its own.
-- Returns: {"applied": true} or {"applied": false, "reason": "unknown_run"}.
-- Raises:  AP001 for a wrong argument.
-- Writes:  ingest_runs.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id is not null),
		autopost.require_argument('stats', coalesce(jsonb_typeof(p_stats), 'object') = 'object');
	if not exists (select 1 from autopost.ingest_runs r where r.workspace_id = p_workspace_id and r.run_id = p_run_id)
		then
		return '{"applied": false, "reason": "unknown_run"}';
	end if;
	perform autopost.close_run(p_workspace_id, p_run_id, p_stats, null);
	return '{"applied": true}';
end
$$;
