create or replace function autopost.why_fanout(p_workspace_id text, p_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: the progress of a running fan-out of a message or a run (p_id), and why it waits; null if
--          none is running. One fan-out of a workspace runs at a time, in the order of their ids; one
--          whose range failed lets the next one pass until its next try.
-- Reads:   fanout_jobs.
declare
	v_now timestamptz := autopost.now_ts();
	v_job autopost.fanout_jobs;
	v_ahead int;
	v_fails boolean;
begin
	select j.* into v_job from autopost.fanout_jobs j
	where j.workspace_id = p_workspace_id and j.message_id = p_id and j.status = 'running'
	order by j.job_id limit 1;
	if v_job.job_id is null then
		select j.* into v_job from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.run_id = p_id and j.status = 'running'
		order by j.job_id limit 1;
	end if;
	if v_job.job_id is null then
		return null;
	end if;
	v_fails := v_job.attempt > 0;
	v_ahead := (select count(*) from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.status = 'running' and j.job_id < v_job.job_id
		and j.next_attempt_at <= v_now);
	return jsonb_build_object('status', 'fanout', 'now', jsonb_build_object('send_at', null,
		'sentence', format('fans out: %s of %s channels are through',
			v_job.enqueued + v_job.deduped + v_job.invalid + v_job.skipped, v_job.planned)
			|| case when v_job.last_error is null then ''
				else format(', the last range failed%s: %s', case when v_job.attempt > 1
					then format(' %s times', v_job.attempt) else '' end, autopost.failure_text(v_job.last_error)) end
			|| case when v_fails and v_job.next_attempt_at > v_now
				then ', the next try is at ' || autopost.instant_text(v_job.next_attempt_at) else '' end
			|| case v_ahead when 0 then '' when 1 then ', it waits for 1 earlier fan-out'
				else format(', it waits for %s earlier fan-outs', v_ahead) end,
		'held_by', case when v_ahead = 0 then '[]'::jsonb else jsonb_build_array(autopost.hold('earlier_fanout', null,
				'the end of the earlier fan-outs', jsonb_build_object('ahead', v_ahead))) end
			|| autopost.hold('fanout', v_job.next_attempt_at, 'a daemon with the stage ingest adds the next channels',
				jsonb_build_object('attempt', v_job.attempt, 'done',
					v_job.enqueued + v_job.deduped + v_job.invalid + v_job.skipped, 'planned', v_job.planned)),
		'daemon_seen_at', (select max(r.seen_at) from autopost.dispatch_runs r)));
end
$$;

create or replace function autopost.why_message(p_workspace_id text, p_message_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: the result of the fan-out of a message that is over; null for an unknown message.
-- Reads:   messages, deliveries.
declare
	v_count int;
begin
	if not exists (select 1 from autopost.messages m
		where m.workspace_id = p_workspace_id and m.message_id = p_message_id) then
		return null;
	end if;
	v_count := (select count(*) from (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id
		limit 10000) x);
	return jsonb_build_object('status', 'message', 'now', jsonb_build_object('held_by', '[]'::jsonb, 'send_at', null,
		'sentence', case v_count when 0 then 'its fan-out is over: no channel got a delivery'
			when 1 then 'its fan-out is over: 1 channel got a delivery'
			else format('its fan-out is over: %s channels got a delivery', case v_count when 10000 then '10000 or more'
				else v_count::text end) end,
		'lifts', 'ask for one of its deliveries: autopost deliveries list --message ' || p_message_id));
end
$$;
