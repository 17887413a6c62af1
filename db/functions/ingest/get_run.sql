create or replace function autopost.get_run(p_workspace_id text, p_run_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: a run with the current state of each of its posts, including submissions and fan-outs;
--          null for an unknown run.
-- Reads:   ingest_runs, submissions, fanout_jobs, deliveries.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id is not null);
	select jsonb_build_object('run_id', r.run_id, 'kind', r.kind, 'endpoint_id', r.endpoint_id, 'source_id',
		r.source_id,
		'started_at', r.started_at, 'finished_at', r.finished_at, 'stats', r.stats_json, 'hints', r.hints,
		'items', (select coalesce(jsonb_agg((i.value - 'deliveries') || coalesce(
				jsonb_build_object('submission_id', s.submission_id, 'submission_status', s.status, 'attempt',
					s.attempt, 'last_error', s.last_error)
					|| coalesce((s.answer - 'deliveries' - 'run_id'), '{}'), '{}')
				|| case when j.job_id is null then '{}' else autopost.fanout_counts(row(j.*)::autopost.fanout_jobs)
					|| jsonb_build_object('fanout', j.status, 'planned', j.planned, 'fanout_error', j.last_error) end
						order by i.ordinality), '[]')
			from jsonb_array_elements(r.items) with ordinality i
			left join autopost.submissions s on s.workspace_id = p_workspace_id
				and s.submission_id = (i.value ->> 'submission_id')::uuid
			left join autopost.fanout_jobs j on j.workspace_id = p_workspace_id and j.run_id = p_run_id
				and j.trace_id = (i.value ->> 'trace_id')::uuid),
		'deliveries', (select coalesce(jsonb_object_agg(d.status, d.n), '{}') from (
			select x.status, count(*) as n from autopost.deliveries x
			where x.workspace_id = p_workspace_id
			and x.message_id in (
				select (i.value ->> 'message_id')::uuid from jsonb_array_elements(r.items) i
				union all select s.message_id from autopost.submissions s
					where s.workspace_id = p_workspace_id and s.run_id = p_run_id)
			and x.ingest_run_id = p_run_id
			group by x.status) d))
	into v_answer
	from autopost.ingest_runs r
	where r.workspace_id = p_workspace_id and r.run_id = p_run_id;
	return v_answer;
end
$$;
