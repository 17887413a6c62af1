create or replace function autopost.only_file_source(p_workspace_id text) returns text
language plpgsql stable
as $$
-- Purpose: the only enabled source of kind filebus.
-- Raises:  AP001 if there is not exactly one.
-- Reads:   pull_sources.
declare
	v_ids text[] := array(
		select s.source_id from autopost.pull_sources s
		where s.workspace_id = p_workspace_id and s.kind = 'filebus' and s.enabled
		order by s.source_id);
begin
	if cardinality(v_ids) <> 1 then
		perform autopost.raise_argument('source_id', 'must be given, because the workspace has '
			|| case when v_ids = '{}' then 'no source of kind filebus' else 'several sources of kind filebus: '
			|| array_to_string(v_ids, ', ') end, case when v_ids = '{}' then 'run autopost source add ID --kind filebus'
			else 'pass one of them' end);
	end if;
	return v_ids[1];
end
$$;

create or replace function autopost.prepare_publish_job(p_workspace_id text, p_source_id text, p_job_id text,
	p_platform text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes the payload of a job from given fields: {"publish_config", "artifact_pointers", "lineage"}. It needs
--          an approval that waits for the job. p_source_id null: the only source of kind filebus. The engine writes
--          the payload file, which is then taken like any
--          other.
-- Returns: {"applied": true, "dry_run", "before": {}, "after": the payload}, or {"applied": false, "dry_run",
--          "reason"}: not_approved, known (the job has a payload), prepared (its payload is being written).
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, audit_heads, in this order.
-- Reads:   pull_sources, platforms, approvals.
-- Writes:  publish_jobs, events (filebus_waiting), admin_audit_log.
declare
	v_act jsonb;
	v_source_id text;
	v_job autopost.publish_jobs;
	v_payload jsonb;
	v_reason text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_source_id := coalesce(nullif(p_source_id, ''), autopost.only_file_source(p_workspace_id));
	perform autopost.file_source(p_workspace_id, v_source_id);
	perform autopost.check_job_name(p_job_id, p_platform);
	perform autopost.require_argument('fields', jsonb_typeof(p_fields) = 'object');
	if jsonb_typeof(p_fields -> 'publish_config') is distinct from 'object'
		or coalesce(p_fields #>> '{artifact_pointers,video}', '') = ''
		or exists (select 1 from jsonb_object_keys(p_fields) f (key)
			where f.key not in ('publish_config', 'artifact_pointers', 'lineage')) then
		perform autopost.raise_argument('fields',
			'must have publish_config and artifact_pointers.video, and may have lineage',
			'pass {"publish_config": {"title": "…"}, "artifact_pointers": {"video": "../../output/JOB/final.mp4"}}');
	end if;
	v_payload := jsonb_build_object('job_id', p_job_id, 'platform', p_platform) || p_fields;
	v_job := autopost.lock_job(p_workspace_id, p_job_id, p_platform);
	v_reason := case
		when v_job.prepared is not null then 'prepared'
		when v_job.job_id is not null then 'known'
		when not exists (select 1 from autopost.approvals a
			where a.workspace_id = p_workspace_id and a.subject = 'job:' || p_job_id and a.platform = p_platform
				and a.decision = 'approve' and a.digest is null and a.voided_at is null
				and coalesce(a.expires_at > autopost.now_ts(), true)) then 'not_approved' end;
	if v_reason is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_reason);
	end if;
	if not p_dry_run then
		v_job.workspace_id := p_workspace_id;
		v_job.job_id := p_job_id;
		v_job.platform := p_platform;
		v_job.source_id := v_source_id;
		v_job.status := 'waiting';
		v_job.prepared := v_payload;
		v_job.prepared_by := p_operator;
		perform autopost.save_job(v_job, v_act);
		perform autopost.audit(p_workspace_id, 'prepare_publish_job', 'job:' || p_job_id || '/' || p_platform, v_act,
			'{}',
			v_payload);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', '{}'::jsonb, 'after', v_payload);
end
$$;
