create or replace function autopost.finish_ingest_run(p_workspace_id text, p_run_id uuid, p_stats jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Ends a run; the numbers of p_stats are added to those it has.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('run_id', p_run_id is not null), autopost.require('stats', coalesce(jsonb_typeof(p_stats), 'object') = 'object');
	perform autopost.close_run(p_workspace_id, p_run_id, p_stats, null);
	return '{"applied": true}';
end
$$;
