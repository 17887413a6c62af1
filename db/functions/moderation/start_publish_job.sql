create or replace function autopost.job_obstacle(p_job autopost.publish_jobs, p_digest text, p_channel
	autopost.channels)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the reason why an approved job does not start now, as {"code", "message"}; null if it starts. A channel
--          that is
--          missing or disabled makes the job wait.
-- Reads:   pull_sources, workspace_endpoints.
begin
	return case
		when p_job.status is distinct from 'approved' then autopost.job_error('not_approved', 'the job is not approved')
		when p_job.digest is distinct from p_digest then autopost.job_error('digest_changed',
			'the job has other content')
		when p_channel.channel_id is null then autopost.job_error('no_channel', format(
			'the source names no channel of %s that exists; set channels.%s of source %s', p_job.platform,
				p_job.platform,
			p_job.source_id))
		when not p_channel.enabled then autopost.job_error('channel_disabled', format(
			'channel %s is disabled; run: autopost channel resume %s', p_channel.channel_id, p_channel.channel_id))
		when not exists (select 1 from autopost.workspace_endpoints e
			where e.workspace_id = p_job.workspace_id and e.source_id = p_job.source_id and e.kind = 'pull_source'
				and e.enabled)
			then autopost.job_error('no_endpoint', format('source %s has no enabled endpoint', p_job.source_id)) end;
end
$$;

create or replace function autopost.start_publish_job(p_workspace_id text, p_job_id text, p_platform text,
	p_digest text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes the submission of an approved job and enqueues it. The engine calls it after it has read the folder
--          again: the content has this digest, and no state file exists. The job leaves as an ordinary post, for
--          the channel that its source names.
-- Returns: {"applied", "reason": not_approved, digest_changed, no_channel, channel_disabled or no_endpoint, and the
--          job}. A job that waits for its channel has the reason as its error.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, messages, channel_gates, in this order.
-- Reads:   pull_sources, channels, workspace_endpoints, deliveries.
-- Writes:  publish_jobs, submissions, ingest_runs, events (filebus_*); as enqueue_posts.
declare
	v_job autopost.publish_jobs;
	v_channel autopost.channels;
	v_obstacle jsonb;
	v_submission autopost.submissions;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_job_name(p_job_id, p_platform);
	perform autopost.require_argument('digest', p_digest <> '');
	v_job := autopost.lock_job(p_workspace_id, p_job_id, p_platform);
	select c.* into v_channel from autopost.job_channel(v_job) c;
	v_obstacle := autopost.job_obstacle(v_job, p_digest, v_channel);
	if v_obstacle is not null then
		if v_job.status = 'approved' and v_obstacle ->> 'code' <> 'digest_changed' and v_job.error is distinct from
			v_obstacle
			then
			v_job.error := v_obstacle;
			v_job := autopost.save_job(v_job, '{}');
		end if;
		return jsonb_build_object('applied', false, 'reason', v_obstacle -> 'code') || autopost.job_document(v_job);
	end if;
	insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, route_tags,
		source_ref,
		run_id, trace_id, created_at, updated_at)
	select p_workspace_id, autopost.new_id(), e.endpoint_id, 'file', 'new', autopost.job_post(v_job, v_channel),
		autopost.job_tags(v_job),
		autopost.job_key(p_job_id, p_platform), autopost.open_run(p_workspace_id, 'file', e.endpoint_id,
			v_job.source_id),
		autopost.new_id(), autopost.now_ts(), autopost.now_ts()
	from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.source_id = v_job.source_id and e.kind = 'pull_source' and e.enabled
	returning * into v_submission;
	perform autopost.enqueue_submission(v_submission);
	select s.* into v_submission from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = v_submission.submission_id;
	v_job.submission_id := v_submission.submission_id;
	v_job.delivery_id := (select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = v_submission.message_id
			and d.trace_id = v_submission.trace_id and d.channel_id = v_channel.channel_id limit 1);
	v_job.status := case when v_job.delivery_id is null then 'failed' else 'publishing' end;
	v_job.error := case
		when v_submission.status = 'failed' then autopost.job_error(v_submission.last_error ->> 'code',
			v_submission.last_error ->> 'message')
		when v_submission.answer -> 'deduped' <> '0' then autopost.job_error('duplicate_content',
			'the channel had this content already, by another post; change the job, or publish it nowhere')
		when v_job.delivery_id is null then autopost.job_error('not_routed', format(
			'the route filter of channel %s refuses the job', v_channel.channel_id)) end;
	v_job := autopost.follow_job(autopost.save_job(v_job, jsonb_build_object('message_id', v_submission.message_id,
		'delivery_id', v_job.delivery_id)));
	return '{"applied": true}'::jsonb || autopost.job_document(v_job);
end
$$;
