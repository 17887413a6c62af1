create or replace function autopost.change_job(p_job autopost.publish_jobs, p_new autopost.publish_jobs)
	returns autopost.publish_jobs
language plpgsql
as $$
-- Purpose: gives a locked job new content. Approvals of other content become void, and the job waits for a new one.
-- Writes:  approvals; as save_job and settle_job.
declare
	v_job autopost.publish_jobs := p_job;
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.approvals a set voided_at = v_now
	where a.workspace_id = v_job.workspace_id and a.subject = 'job:' || v_job.job_id and a.platform = v_job.platform
		and a.voided_at is null and a.digest is distinct from p_new.digest and a.digest is not null;
	v_job.payload := p_new.payload;
	v_job.payload_digest := p_new.payload_digest;
	v_job.artifacts := p_new.artifacts;
	v_job.digest := p_new.digest;
	v_job.error := p_new.error;
	v_job.prepared := null;
	v_job.status := 'waiting';
	v_job.submission_id := null;
	v_job.delivery_id := null;
	return autopost.settle_job(autopost.save_job(v_job, '{}'));
end
$$;

create or replace function autopost.put_job(p_job autopost.publish_jobs, p_new autopost.publish_jobs, p_undoubted
	boolean)
	returns jsonb
language plpgsql
as $$
-- Purpose: adds a locked job, or gives it its new content if its status allows that.
-- Returns: {"applied", "reason"} and the job (job_document).
-- Writes:  as change_job.
declare
	v_job autopost.publish_jobs := p_job;
	-- An artifact that cannot be read now is not a changed one.
	v_same boolean := p_job.payload_digest is not distinct from p_new.payload_digest
		and (p_new.digest is null or p_job.digest is not distinct from p_new.digest);
	v_reason text;
begin
	if v_job.status = 'unknown' and v_job.delivery_id is null and p_undoubted then
		v_job.doubt := null;
		v_job.error := null;
		v_job.status := 'waiting';
		v_job := autopost.save_job(v_job, '{}');
	end if;
	if v_job.job_id is null then
		v_job := autopost.settle_job(autopost.save_job(p_new, '{}'));
	elsif v_same and (v_job.status <> 'waiting' or v_job.error is not distinct from p_new.error) then
		v_job := autopost.settle_job(v_job);
		v_reason := case when v_job.status = p_job.status then 'unchanged' end;
	elsif v_same then
		v_job.error := p_new.error;
		v_job := autopost.settle_job(autopost.save_job(v_job, '{}'));
	elsif v_job.status = 'published' then
		v_reason := 'published';
	elsif v_job.status = 'unknown' and v_job.delivery_id is null then
		v_job.payload := p_new.payload;
		v_job.payload_digest := p_new.payload_digest;
		v_job.artifacts := p_new.artifacts;
		v_job.digest := p_new.digest;
		v_job := autopost.save_job(v_job, '{}');
	elsif autopost.withdraw_job(v_job, 'the job has new content') then
		v_job := autopost.change_job(v_job, p_new);
	else
		v_reason := v_job.status;
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', v_reason is null, 'reason', v_reason))
		|| autopost.job_document(v_job);
end
$$;

create or replace function autopost.put_publish_job(p_workspace_id text, p_source_id text, p_payload jsonb) returns
	jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds a file job, or takes its new content. p_payload is the document of the payload file: {"job_id",
--          "platform", "publish_config", "artifact_pointers", "lineage"}. The engine adds "file": {"digest": of the
--          bytes, "artifacts": {name: {"path", "blob_ref", "size", "modified"}}, "complete": all of them are in the
--          media store, "error", "no_state": no state file exists}. New content voids earlier approvals; after a
--          rejection it opens the job again. A job whose delivery was called keeps its content.
-- Returns: {"applied", "reason": unchanged, published, publishing or unknown, and the job: "status", "digest",
--          "artifacts", "file": what its state or status file contains, …}, or {"applied": false, "reason":
--          "other_source"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, channels, deliveries, audit_heads, in this order.
-- Reads:   pull_sources, platforms, workspaces.
-- Writes:  publish_jobs, approvals, events (filebus_*); as skip_deliveries.
declare
	v_source autopost.pull_sources;
	v_file jsonb := coalesce(p_payload -> 'file', '{}');
	v_job autopost.publish_jobs;
	v_new autopost.publish_jobs;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_source := autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('payload', jsonb_typeof(p_payload) = 'object');
	perform autopost.check_job_name(p_payload ->> 'job_id', p_payload ->> 'platform');
	v_job := autopost.lock_job(p_workspace_id, p_payload ->> 'job_id', p_payload ->> 'platform');
	if v_job.source_id <> p_source_id then
		return '{"applied": false, "reason": "other_source"}';
	end if;
	v_new.workspace_id := p_workspace_id;
	v_new.job_id := p_payload ->> 'job_id';
	v_new.platform := p_payload ->> 'platform';
	v_new.source_id := p_source_id;
	v_new.status := 'waiting';
	v_new.payload := p_payload - 'file';
	v_new.payload_digest := coalesce(case when autopost.is_engine_login() then v_file ->> 'digest' end, 'sha256:'
		|| encode(sha256(convert_to(v_new.payload::text, 'UTF8')), 'hex'));
	v_new.artifacts := case when autopost.is_engine_login() and jsonb_typeof(v_file -> 'artifacts') = 'object'
		then v_file -> 'artifacts' else '{}' end;
	v_new.error := nullif(v_file -> 'error', 'null');
	if v_new.error is null and v_source.config_json #> array['channels', v_new.platform] is null then
		v_new.error := autopost.job_error('no_channel',
			format('the source names no channel for %s; run: autopost source '
			'set %s --config channels', v_new.platform, p_source_id));
	elsif autopost.is_engine_login() and v_file -> 'complete' = 'true' then
		v_new.digest := autopost.job_digest(v_new.payload_digest, v_new.artifacts);
	end if;
	return autopost.put_job(v_job, v_new, autopost.is_engine_login() and v_file -> 'no_state' = 'true');
end
$$;
