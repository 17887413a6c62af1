create or replace function autopost.import_publish_state(p_workspace_id text, p_source_id text, p_state jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes a state file of a file job. A readable one, {"job_id", "platform", "status": "PUBLISHED",
--          "published_at", "platform_post_id", "post_url"}, makes the job published; a delivery that was not called is
--          withdrawn. An unreadable one, {"job_id", "platform", "damaged": reason, "digest": of the bytes}, is an
--          unknown outcome: the platform is asked before anything is sent. The engine adds the answer as "asked":
--          "absent".
-- Returns: {"applied", "reason": "known" or "publishing", and the job}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, channels, deliveries, audit_heads, in this order.
-- Reads:   pull_sources, platforms.
-- Writes:  publish_jobs, events (filebus_*); as skip_deliveries.
declare
	v_job autopost.publish_jobs;
	v_fresh boolean;
	v_at timestamptz := autopost.timestamp_of(p_state ->> 'published_at');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('state', jsonb_typeof(p_state) = 'object');
	perform autopost.check_job_name(p_state ->> 'job_id', p_state ->> 'platform');
	if not p_state ? 'damaged' and (p_state -> 'status' is distinct from '"PUBLISHED"' or v_at is null
		or coalesce(p_state ->> 'platform_post_id', '') = '') then
		perform autopost.raise_argument('state', 'must have status PUBLISHED, published_at and platform_post_id',
			'pass "damaged" with the reason for a file without them');
	end if;
	v_job := autopost.lock_job(p_workspace_id, p_state ->> 'job_id', p_state ->> 'platform');
	v_fresh := v_job.job_id is null;
	if v_job.status = 'published' or p_state ? 'damaged' and (v_job.status = 'publishing' or v_job.delivery_id is not
		null
		and v_job.status = 'unknown' or v_job.doubt ->> 'digest' = p_state ->> 'digest' and (v_job.doubt ? 'asked'
		or not p_state ? 'asked')) then
		return '{"applied": false, "reason": "known"}'::jsonb || autopost.job_document(v_job);
	elsif not v_fresh and not p_state ? 'damaged' and not autopost.withdraw_job(v_job,
		'a state file says that it is published') then
		return '{"applied": false, "reason": "publishing"}'::jsonb || autopost.job_document(v_job);
	end if;
	v_job.workspace_id := p_workspace_id;
	v_job.job_id := p_state ->> 'job_id';
	v_job.platform := p_state ->> 'platform';
	v_job.source_id := coalesce(v_job.source_id, p_source_id);
	if p_state ? 'damaged' then
		v_job.doubt := jsonb_build_object('digest', p_state -> 'digest', 'reason', p_state -> 'damaged') || case
			when p_state ? 'asked' and autopost.is_engine_login() then jsonb_build_object('asked', p_state -> 'asked',
				'asked_at', autopost.now_ts()) else '{}' end;
		v_job.status := case when v_job.doubt ? 'asked' then 'waiting' else 'unknown' end;
		v_job.error := case when v_job.status = 'unknown' then autopost.job_error('state_damaged', format(
			'the state file is unreadable: %s; look for the post on the platform, then correct or remove the file',
			p_state ->> 'damaged')) end;
	else
		v_job.status := 'published';
		v_job.imported := true;
		v_job.error := null;
		v_job.doubt := null;
		v_job.prepared := null;
		v_job.delivery_id := null;
		v_job.submission_id := null;
		v_job.published_at := v_at;
		v_job.platform_post_id := left(p_state ->> 'platform_post_id', 200);
		v_job.post_url := left(p_state ->> 'post_url', 2000);
	end if;
	v_job := autopost.save_job(v_job, '{"state_file": true}');
	return '{"applied": true}'::jsonb || autopost.job_document(autopost.settle_job(v_job));
end
$$;
