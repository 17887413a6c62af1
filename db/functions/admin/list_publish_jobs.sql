create or replace function autopost.list_publish_jobs(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_publish_jobs
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists file jobs by job and platform. All keys of p_filter are optional: status, source_id, job_id, platform,
--          after_job and after_platform (the last row of the page before).
-- Raises:  AP001 for an unknown key or status, or a limit outside 1 to 10000.
-- Reads:   list_publish_jobs (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{status,source_id,job_id,platform,after_job,after_platform}', p_limit);
	perform autopost.check_status(p_filter, autopost.publish_job_statuses());
	return query
	select v.* from autopost.list_publish_jobs_rows v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'status' or v.status = p_filter ->> 'status')
	and (not p_filter ? 'source_id' or v.source_id = p_filter ->> 'source_id')
	and (not p_filter ? 'job_id' or v.job_id = p_filter ->> 'job_id')
	and (not p_filter ? 'platform' or v.platform = p_filter ->> 'platform')
	and (not p_filter ? 'after_job' or (v.job_id, v.platform) > (p_filter ->> 'after_job',
		coalesce(p_filter ->> 'after_platform', '')))
	order by v.job_id, v.platform
	limit p_limit;
end
$$;
