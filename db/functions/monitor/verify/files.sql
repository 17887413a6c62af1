create or replace function autopost.verify_i33(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I33. A job that autopost published has an approval of its content, its delivery is sent
--          with the same id, and no other delivery of the job was sent or is open. A job that was not published has no
--          sent delivery. Each approval file counts for one content.
begin
	return query
	select jsonb_build_object('what', 'published without an approval of its content', 'job_id', j.job_id, 'platform',
		j.platform)
	from autopost.publish_jobs j
	where j.workspace_id = p_workspace_id and (j.status = 'publishing' or j.status = 'published' and not j.imported)
	and not exists (
		select 1 from autopost.approvals a
		where a.workspace_id = p_workspace_id and a.subject = 'job:' || j.job_id and a.platform = j.platform
			and a.decision = 'approve' and a.voided_at is null and a.digest = j.digest
			and j.digest = autopost.job_digest(j.payload_digest, j.artifacts))
	union all
	select jsonb_build_object('what', 'another id than that of its delivery', 'job_id', j.job_id, 'platform',
		j.platform,
		'delivery_id', d.delivery_id)
	from autopost.publish_jobs j
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = j.delivery_id
	where j.workspace_id = p_workspace_id and j.status = 'published'
	and (d.status <> 'sent' or d.provider_message_id is distinct from j.platform_post_id)
	union all
	select jsonb_build_object('what', 'sent, and the job waits', 'job_id', j.job_id, 'platform', j.platform,
		'delivery_id',
		d.delivery_id)
	from autopost.publish_jobs j
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = j.delivery_id
	where j.workspace_id = p_workspace_id and j.status in ('waiting', 'approved', 'rejected')
	union all
	select jsonb_build_object('what', 'two deliveries of a job', 'source_ref', x.source_ref, 'deliveries', x.deliveries)
	from (
		select s.source_ref, jsonb_agg(d.delivery_id) as deliveries
		from autopost.submissions s
		join autopost.deliveries d on d.workspace_id = p_workspace_id and d.message_id = s.message_id
			and d.trace_id = s.trace_id
		where s.workspace_id = p_workspace_id and s.kind = 'file'
		and (d.status in ('queued', 'claimed', 'sending', 'retry', 'sent')
			or d.status in ('failed_permanent', 'dead')
				and autopost.job_status_of(row(d.*)::autopost.deliveries) = 'unknown')
		group by s.source_ref having count(*) > 1) x
	union all
	select jsonb_build_object('what', 'a nonce counts twice', 'subject', a.subject, 'platform', a.platform,
		'file_digest',
		a.file_digest)
	from autopost.approvals a
	where a.workspace_id = p_workspace_id and a.file_digest is not null
	group by a.subject, a.platform, a.file_digest having count(*) > 1;
end
$$;
