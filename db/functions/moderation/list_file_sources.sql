create or replace function autopost.list_file_sources() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the enabled sources of kind filebus of all active workspaces of the role, and which of them have
--          work: a due scan, a job to start or to follow, files to write. Only the engine may call it.
-- Returns: [{"workspace_id", "source_id", "root", "due"}].
-- Reads:   as file_source_work.
begin
	perform autopost.enter_all_workspaces();
	return (select coalesce(jsonb_agg(jsonb_build_object('workspace_id', w.workspace_id, 'source_id', w.source_id,
		'root',
		w.root, 'due', w.due_at <= autopost.now_ts()) order by w.workspace_id, w.source_id), '[]')
	from autopost.file_source_work() w);
end
$$;
