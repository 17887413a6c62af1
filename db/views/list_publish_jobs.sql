-- File jobs of folders.
create or replace view autopost.list_publish_jobs_rows as
select j.workspace_id, j.job_id, j.platform, j.source_id, j.status, j.payload #>> '{publish_config,title}' as title,
	j.payload_digest, j.digest, j.error, j.submission_id, j.delivery_id, j.platform_post_id, j.post_url, j.published_at,
	j.imported, j.created_at, j.updated_at
from autopost.publish_jobs j;

create or replace view autopost.list_publish_jobs with (security_barrier = true) as
select v.workspace_id, v.job_id, v.platform, v.source_id, v.status, v.title, v.payload_digest, v.digest, v.error,
	v.submission_id, v.delivery_id, v.platform_post_id, v.post_url, v.published_at, v.imported, v.created_at,
		v.updated_at
from autopost.list_publish_jobs_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
