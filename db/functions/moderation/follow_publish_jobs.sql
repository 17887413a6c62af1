create or replace function autopost.follow_publish_jobs(p_workspace_id text, p_source_id text, p_limit int) returns
	jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes the outcomes of deliveries into the jobs of a source, and lists the jobs with work for the engine: to
--          write a payload, to start, to ask the platform about, or with files to write.
-- Returns: [{job}] as job_document, ordered by job.
-- Raises:  AP001 for a wrong argument.
-- Locks:   publish_jobs (skip locked).
-- Reads:   pull_sources, deliveries.
-- Writes:  publish_jobs, events (filebus_*).
declare
	v_job autopost.publish_jobs;
	v_jobs jsonb := '[]';
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('limit', p_limit > 0);
	for v_job in
		select j.* from autopost.publish_jobs j
		left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = j.delivery_id
		where j.workspace_id = p_workspace_id and j.source_id = p_source_id
			and (j.status in ('approved', 'publishing', 'unknown', 'failed') or j.files_at is distinct from j.updated_at
				or j.prepared is not null)
			and (j.status = 'approved' or j.files_at is distinct from j.updated_at or j.prepared is not null
				or (j.status = 'unknown' and j.delivery_id is null)
				or autopost.job_status_of(row(d.*)::autopost.deliveries) <> j.status and d.delivery_id is not null)
		order by j.job_id, j.platform
		limit p_limit
		for no key update of j skip locked
	loop
		v_jobs := v_jobs || autopost.job_document(autopost.follow_job(v_job));
	end loop;
	return v_jobs;
end
$$;
