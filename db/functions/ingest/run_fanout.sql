create or replace function autopost.run_fanout(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: processes one range of the workspace's oldest fan-out job: p_limit channels, at most
--          fanout_chunk_channels. Call it again while the status is "running" or "done". A rolled
--          back call loses nothing. One job runs at a time, so that posts keep their order in every
--          channel. A job whose range fails is deferred, and the next job goes first.
-- Returns: {"status": "running" | "done" | "failed" (deferred until "next_attempt_at") | "busy"
--          (another worker has it) | "idle", "job_id", "message_id", "run_id", "planned",
--          "enqueued", "deduped", "invalid", "skipped"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   fanout_jobs (skip locked), messages, channel_gates, in this order.
-- Writes:  fanout_jobs, deliveries, events, channel_gates, ingest_runs.
declare
	v_id uuid;
	v_job autopost.fanout_jobs;
	v_limit int;
	v_message text;
	v_state text;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('limit', p_limit > 0);
	v_limit := least(p_limit, autopost.setting('fanout_chunk_channels')::int);
	select j.job_id into v_id from autopost.fanout_jobs j
	where j.workspace_id = p_workspace_id and j.status = 'running' and j.next_attempt_at <= autopost.now_ts()
	order by j.job_id limit 1;
	if v_id is null then
		return '{"status": "idle"}';
	end if;
	select j.* into v_job from autopost.fanout_jobs j
	where j.workspace_id = p_workspace_id and j.job_id = v_id and j.status = 'running'
	for no key update of j skip locked;
	if v_job.job_id is null then
		return jsonb_build_object('status', 'busy', 'job_id', v_id);
	end if;
	begin
		v_job := autopost.fan_out_next(v_job, v_limit);
	exception when others then
		-- No error may stop the posts after this one. last_error keeps it.
		get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
		v_now := autopost.now_ts();
		update autopost.fanout_jobs j
		set attempt = j.attempt + 1, next_attempt_at = v_now + least(300,
			2 ^ least(j.attempt, 10)) * interval '1 second',
			last_error = autopost.redact(jsonb_build_object('code', v_state, 'message', v_message)),
				updated_at = v_now
		where j.workspace_id = p_workspace_id and j.job_id = v_id
		returning j.* into v_job;
	end;
	return jsonb_strip_nulls(autopost.fanout_counts(v_job) || jsonb_build_object('status', case
		when v_job.attempt > 0 then 'failed' else v_job.status end,
		'job_id', v_job.job_id, 'message_id', v_job.message_id, 'run_id', v_job.run_id, 'planned', v_job.planned,
		'next_attempt_at', case when v_job.attempt > 0 then v_job.next_attempt_at end, 'error', v_job.last_error));
end
$$;
