create or replace function autopost.begin_run(p_workspace_id text, p_run_id uuid, p_kind text, p_endpoint_id text,
	p_source_id text) returns void
language plpgsql
as $$
-- Purpose: opens an ingest run with a given id.
-- Writes:  ingest_runs.
begin
	if coalesce(p_kind not in ('push', 'pull', 'api', 'command', 'event', 'file', 'page', 'recurrence'), true) then
		perform autopost.raise_argument('kind', format('%s is unknown', coalesce(p_kind, 'null')),
			'use push, pull, api, command, event, file, page or recurrence');
	end if;
	insert into autopost.ingest_runs (workspace_id, run_id, kind, endpoint_id, source_id, started_at)
	values (p_workspace_id, p_run_id, p_kind, p_endpoint_id, p_source_id, autopost.now_ts());
end
$$;

create or replace function autopost.open_run(p_workspace_id text, p_kind text, p_endpoint_id text,
	p_source_id text) returns uuid
language plpgsql
as $$
-- Purpose: opens an ingest run and returns its id.
-- Writes:  ingest_runs.
declare
	v_run_id uuid := autopost.new_id();
begin
	perform autopost.begin_run(p_workspace_id, v_run_id, p_kind, p_endpoint_id, p_source_id);
	return v_run_id;
end
$$;

create or replace function autopost.close_run(p_workspace_id text, p_run_id uuid, p_stats jsonb,
	p_items jsonb) returns void
language plpgsql
as $$
-- Purpose: adds counts and answers to an ingest run and ends it, unless one of its fan-outs is
--          still running.
-- Reads:   fanout_jobs.
-- Writes:  ingest_runs.
declare
	v_now timestamptz := autopost.now_ts();
	v_stats jsonb := (select r.stats_json from autopost.ingest_runs r
		where r.workspace_id = p_workspace_id and r.run_id = p_run_id for no key update of r);
	v_running boolean := exists (
		select 1 from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.run_id = p_run_id and j.status = 'running');
begin
	v_stats := (
		select coalesce(jsonb_object_agg(k.key, case when jsonb_typeof(k.value) = 'number'
			then to_jsonb(k.total) else k.value end), '{}')
		from (
			select s.key, (array_agg(s.value))[1] as value,
				sum(case when jsonb_typeof(s.value) = 'number' then (s.value #>> '{}')::numeric end) as total
			from (select * from jsonb_each(v_stats) union all select * from jsonb_each(coalesce(p_stats, '{}'))) s
			group by s.key) k);
	update autopost.ingest_runs r
	set stats_json = v_stats, finished_at = case when not v_running then v_now end,
		items = case when jsonb_array_length(r.items) < 1000 then r.items || coalesce(p_items, '[]') else r.items end
	where r.workspace_id = p_workspace_id and r.run_id = p_run_id;
end
$$;

create or replace function autopost.note_hints(p_workspace_id text, p_run_id uuid, p_items jsonb) returns void
language plpgsql
as $$
-- Purpose: stores the routing of posts in their run: hints of the payloads, tags of the source.
--          p_items: [{"raw", "trace_id", "route_tags"}]. The row of a run is locked last, after
--          gates.
-- Writes:  ingest_runs.
declare
	v_hints jsonb;
begin
	select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('trace_id', i.value -> 'trace_id',
		'routing', nullif(i.value -> 'raw' -> 'routing', '{}'),
		'tags', nullif(i.value -> 'route_tags', '[]'))) order by i.ordinality)
	into v_hints
	from jsonb_array_elements(p_items) with ordinality i
	where coalesce(nullif(i.value -> 'raw' -> 'routing', '{}'), nullif(i.value -> 'route_tags', '[]')) is not null;
	if v_hints is not null then
		update autopost.ingest_runs r
		set hints = r.hints || v_hints
		where r.workspace_id = p_workspace_id and r.run_id = p_run_id and jsonb_array_length(r.hints) < 1000;
	end if;
end
$$;

create or replace function autopost.answer_stats(p_answers jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the counters of a run from the answers of its posts. A running fan-out counts when it
--          ends.
begin
	return (
		select jsonb_build_object(
			'accepted', count(*) filter (where a.value ->> 'status' in ('enqueued', 'accepted', 'pending',
				'approved')),
			'dedup_dropped', count(*) filter (where a.value ->> 'status' = 'duplicate'),
			'rejected', count(*) filter (where a.value ->> 'status' = 'rejected'),
			'enqueued', coalesce(sum((a.value ->> 'enqueued')::int) filter (where a.value ->> 'fanout' is distinct
				from 'running'), 0),
			'deduped', coalesce(sum((a.value ->> 'deduped')::int), 0),
			'validation_failed', coalesce(sum((a.value ->> 'invalid')::int), 0),
			'skipped', coalesce(sum((a.value ->> 'skipped')::int), 0))
			|| case when bool_or(a.value ? 'pending') then jsonb_build_object('pending',
				sum((a.value ->> 'pending')::int)) else '{}' end
		from jsonb_array_elements(p_answers) a);
end
$$;
