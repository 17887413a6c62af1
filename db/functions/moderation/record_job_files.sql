create or replace function autopost.record_job_files(p_workspace_id text, p_job_id text, p_platform text,
	p_updated_at timestamptz) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records that the state or status file of a job shows its row as of p_updated_at. A newer row is written
--          again. Only the engine may call it.
-- Returns: {"applied"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   publish_jobs.
-- Writes:  publish_jobs.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_job_name(p_job_id, p_platform);
	perform autopost.require_argument('updated_at', p_updated_at is not null);
	update autopost.publish_jobs j set files_at = p_updated_at
	where j.workspace_id = p_workspace_id and j.job_id = p_job_id and j.platform = p_platform
		and j.updated_at = p_updated_at;
	return jsonb_build_object('applied', found);
end
$$;
