create or replace function autopost.job_sentence(p_job autopost.publish_jobs) returns jsonb
language plpgsql stable
as $$
-- Purpose: says in one sentence what a file job waits for, and what helps: {"sentence", "lifts"}.
-- Reads:   approvals, pull_sources, pull_cursors, workspaces.
declare
	v_given int := (select count(distinct a.approver) from autopost.approvals a
		where a.workspace_id = p_job.workspace_id and a.subject = 'job:' || p_job.job_id and a.platform = p_job.platform
			and a.decision = 'approve' and a.voided_at is null and a.digest = p_job.digest);
	v_source autopost.pull_sources;
begin
	select s.* into v_source from autopost.pull_sources s
	where s.workspace_id = p_job.workspace_id and s.source_id = p_job.source_id;
	return jsonb_strip_nulls(case
		when p_job.status in ('waiting', 'approved') and not v_source.enabled then jsonb_build_object('sentence',
			format('waits: source %s is disabled', p_job.source_id), 'lifts', 'autopost source set ' || p_job.source_id
			|| ' --enabled')
		when p_job.status in ('waiting', 'approved') and p_job.error is not null then jsonb_build_object('sentence',
			'waits: ' || autopost.failure_text(p_job.error), 'lifts',
				'correct it; the folder is read again automatically')
		when p_job.status = 'waiting' and p_job.prepared is not null then jsonb_build_object('sentence',
			'waits: its payload file is being written', 'lifts', 'a daemon with the stage ingest that sees the folder')
		when p_job.status = 'waiting' and p_job.digest is null then jsonb_build_object('sentence',
			'waits: its artifacts are being copied', 'lifts', 'a daemon with the stage ingest that sees the folder')
		when p_job.status = 'waiting' then jsonb_build_object('sentence',
			format('waits for an approval: %s of %s given',
			v_given, autopost.approvals_needed(p_job.workspace_id)), 'lifts',
				format('an approval file, or: autopost filebus '
			'approve %s --platform %s', p_job.job_id, p_job.platform))
		when p_job.status = 'approved' then jsonb_build_object('sentence',
			'approved: the folder is read once more, then it is queued',
			'lifts', 'a daemon with the stage ingest that sees the folder')
		when p_job.status = 'publishing' then jsonb_build_object('sentence', format('queued as delivery %s',
			p_job.delivery_id),
			'lifts', 'autopost why ' || p_job.delivery_id)
		when p_job.status = 'published' then jsonb_build_object('sentence', format('published at %s as %s%s',
			autopost.instant_text(p_job.published_at), p_job.platform_post_id, case when p_job.imported
			then ', by something else: its state file was imported' else '' end))
		when p_job.status = 'rejected' then jsonb_build_object('sentence', autopost.failure_text(p_job.error), 'lifts',
			'change the payload: the job then waits for a new approval')
		when p_job.status = 'failed' then jsonb_build_object('sentence', autopost.failure_text(p_job.error), 'lifts',
			format('autopost filebus approve %s --platform %s tries it again', p_job.job_id, p_job.platform))
		when p_job.delivery_id is not null then jsonb_build_object('sentence', 'it is unknown if the post exists: '
			|| autopost.failure_text(p_job.error), 'lifts',
				format('look at the channel, then: autopost deliveries resolve %s '
			'--found ID, or --absent', p_job.delivery_id))
		else jsonb_build_object('sentence', 'it is unknown if the post exists: ' || autopost.failure_text(p_job.error),
			'lifts', 'correct or remove its state file') end);
end
$$;

create or replace function autopost.get_publish_job(p_workspace_id text, p_job_id text, p_platform text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a file job with its payload, artifacts, decisions and what it waits for. Decisions about a job
--          without a
--          payload are shown with the status "unseen".
-- Returns: {row of list_publish_jobs, "payload", "artifacts", "doubt", "prepared_by", "approvals": [{"by", "decision",
--          "at", "source", "nonce", "stated_by", "void"}], "needed", "now": {"sentence", "lifts"}}; null for an unknown
--          job.
-- Raises:  AP001 for a wrong argument.
-- Reads:   list_publish_jobs (view), publish_jobs, approvals, pull_sources, platforms, workspaces.
declare
	v_job autopost.publish_jobs;
	v_row jsonb;
	v_approvals jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_job_name(p_job_id, p_platform);
	select j.* into v_job from autopost.publish_jobs j
	where j.workspace_id = p_workspace_id and j.job_id = p_job_id and j.platform = p_platform;
	select jsonb_agg(jsonb_build_object('by', a.approver, 'decision', a.decision, 'at', a.decided_at, 'source',
		a.source,
		'nonce', a.nonce, 'stated_by', a.stated_by, 'void', a.voided_at is not null) order by a.decided_at,
			a.approval_id)
	into v_approvals
	from autopost.approvals a
	where a.workspace_id = p_workspace_id and a.subject = 'job:' || p_job_id and a.platform = p_platform;
	if v_job.job_id is null and v_approvals is null then
		return null;
	end if;
	v_row := case when v_job.job_id is null then jsonb_build_object('job_id', p_job_id, 'platform', p_platform,
		'status',
		'unseen', 'now', jsonb_build_object('sentence', 'a decision waits for the payload of the job', 'lifts',
		format('its payload file, or: autopost filebus prepare %s --platform %s', p_job_id, p_platform)))
		else (select to_jsonb(v) - 'workspace_id' from autopost.list_publish_jobs_rows v
			where v.workspace_id = p_workspace_id and v.job_id = p_job_id and v.platform = p_platform)
			|| jsonb_build_object('now', autopost.job_sentence(v_job)) end;
	return v_row || jsonb_build_object('payload', coalesce(v_job.payload, v_job.prepared), 'artifacts',
		coalesce(v_job.artifacts, '{}'), 'doubt', v_job.doubt, 'prepared_by', v_job.prepared_by, 'approvals',
		coalesce(v_approvals, '[]'), 'needed', autopost.approvals_needed(p_workspace_id));
end
$$;
