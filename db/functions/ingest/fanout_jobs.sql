create or replace function autopost.open_fanout(p_workspace_id text, p_post jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: creates the job of a post with more channels than one transaction should take, in the
--          transaction of its message. Each range is routed when it is processed: a channel that is
--          added or changed later counts as it is then, or not at all.
-- Returns: its part of the enqueue answer. "enqueued" is the planned number until the job is done.
-- Reads:   channels.
-- Writes:  fanout_jobs.
declare
	v_planned int;
begin
	select count(*) into v_planned
	from autopost.channels c
	where c.workspace_id = p_workspace_id
	and (p_post -> 'decided' = 'true' or not c.moderated)
	and autopost.is_routed(row(c.*)::autopost.channels, autopost.texts_of(p_post -> 'tags'),
		autopost.texts_of(p_post -> 'include'),
		autopost.texts_of(p_post -> 'exclude'));
	insert into autopost.fanout_jobs (workspace_id, job_id, message_id, run_id, trace_id, post, planned,
		next_attempt_at, created_at, updated_at)
	values (p_workspace_id, autopost.new_id(), (p_post ->> 'message_id')::uuid, (p_post ->> 'run_id')::uuid,
		(p_post ->> 'trace_id')::uuid,
		p_post, v_planned, autopost.now_ts(), (p_post ->> 'not_before')::timestamptz,
			(p_post ->> 'not_before')::timestamptz);
	perform pg_notify('autopost_wake', 'fanout');
	return jsonb_build_object('fanout', 'running', 'planned', v_planned, 'enqueued', v_planned, 'deduped', 0, 'invalid',
		0, 'skipped', 0, 'deliveries', '[]'::jsonb);
end
$$;

create or replace function autopost.fanout_counts(p_job autopost.fanout_jobs) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the results of a job so far.
select jsonb_build_object('enqueued', p_job.enqueued, 'deduped', p_job.deduped, 'invalid', p_job.invalid, 'skipped',
	p_job.skipped)
$$;

create or replace function autopost.fan_out_next(p_job autopost.fanout_jobs, p_limit int) returns autopost.fanout_jobs
language plpgsql
as $$
-- Purpose: processes the next range of a locked job: deliveries, events and counters in one
--          transaction.
-- Returns: the job afterwards.
-- Locks:   quotas, budgets and channels for a slot, messages, channel_gates, in this order.
-- Reads:   channels.
-- Writes:  deliveries, media_blobs, fanout_jobs, events, channel_gates, ingest_runs.
declare
	v_job autopost.fanout_jobs;
	v_now timestamptz;
	v_fresh boolean;
	v_route record;
	v_done record;
	v_over boolean;
begin
	if p_job.post ? 'slot' then
		perform autopost.lock_slots(p_job.workspace_id, (
			select r.ids from autopost.route_post(p_job.workspace_id, p_job.post, p_job.position, p_limit) r));
	end if;
	-- An enqueue of the same content raises seen_count under this lock.
	select m.seen_count = 1 into v_fresh from autopost.messages m
	where m.workspace_id = p_job.workspace_id and m.message_id = p_job.message_id
	for no key update of m;
	v_now := autopost.now_ts();
	select r.ids, r.ttls, r.choices, r.renderings into v_route
		from autopost.route_post(p_job.workspace_id, p_job.post, p_job.position, p_limit) r;
	v_over := coalesce(cardinality(v_route.ids), 0) < p_limit;
	select f.counts, f.armed, f.dropped into v_done
	from autopost.fan_out_to(p_job.workspace_id, p_job.post, p_job.job_id, v_fresh, v_route.ids, v_route.ttls,
		v_route.choices, v_route.renderings, v_now) f;
	perform autopost.record_dropped(p_job.workspace_id, p_job.post, v_done.dropped, p_job.deduped),
		autopost.record_source_urls(p_job.workspace_id, p_job.post, v_route.ids);
	update autopost.fanout_jobs j
	set position = coalesce(v_route.ids[cardinality(v_route.ids)], j.position),
		enqueued = j.enqueued + (v_done.counts ->> 'enqueued')::int,
			deduped = j.deduped + (v_done.counts ->> 'deduped')::int,
		invalid = j.invalid + (v_done.counts ->> 'invalid')::int,
			skipped = j.skipped + (v_done.counts ->> 'skipped')::int,
		status = case when v_over then 'done' else j.status end, post = case when v_over then null else j.post end,
		finished_at = case when v_over then v_now end, attempt = 0, last_error = null, updated_at = v_now
	where j.workspace_id = p_job.workspace_id and j.job_id = p_job.job_id
	returning j.* into v_job;
	if v_over then
		perform autopost.record_fan_out(p_job.workspace_id, p_job.post, autopost.fanout_counts(v_job));
	end if;
	perform autopost.arm_gates(p_job.workspace_id, v_done.armed, autopost.due_of(p_job.post))
		where v_done.armed <> '{}';
	if v_over then
		perform autopost.close_run(p_job.workspace_id, p_job.run_id,
			autopost.answer_stats(jsonb_build_array(autopost.fanout_counts(v_job))), null);
	end if;
	return v_job;
end
$$;
