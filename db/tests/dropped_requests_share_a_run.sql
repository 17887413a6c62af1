-- Above a rate, dropped requests share a run and an event. A flood does not fill the database and is counted exactly.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(32);

update autopost.settings set value = '2' where key = 'ingress_drops_per_second';
update autopost.workspace_endpoints set ingress_rps = 0.001, max_payload_bytes = 1000;
create function test.knock(p_items int default 1, p_bytes int default 10) returns jsonb
language sql
as $$
select autopost.guard_ingress('w', 'in', p_bytes, p_items)
$$;
create function test.sum(p_counter text) returns int
language sql
as $$
select coalesce(sum((r.stats_json ->> p_counter)::int), 0)::int from autopost.ingest_runs r
$$;

select is(test.knock() -> 'admitted', 'true');
select test.knock() from generate_series(1, 2);
select is((select count(*)::int from autopost.ingest_runs), 2, 'the first two have a run each');
select is(test.count_events('ingress_rate_limited'), 2);
select is(test.knock(3) -> 'admitted', 'false', 'the third is refused as they were');
select test.knock() from generate_series(1, 96);
select is((select count(*)::int from autopost.ingest_runs), 3, 'ninety-seven share one');
select is(test.sum('rate_limited'), 101, 'which has counted all of their posts by now');
select is((select r.stats_json from autopost.ingest_runs r where r.finished_at is null),
	'{"requests": 97, "rate_limited": 99}');
select is(test.count_events('ingress_rate_limited'), 2, 'their event comes with the end of the window');
select is(test.knock(1, 1001) ->> 'reason', 'size', 'drops of another kind are counted apart');
select is(test.count_events('ingress_payload_rejected'), 1);
select is((select autopost.get_endpoint('w', 'in') #- '{dropping,0,run_id}' -> 'dropping'),
	'[{"action": "ingress_rate_limited", "since": "2026-06-01T12:00:00+00:00"}]', 'get_endpoint shows it');

-- The window is longer than a second, so that a long flood stays one.
select test.tick('59 seconds');
select test.knock();
select is((select count(*)::int from autopost.ingest_runs), 4);
select is(autopost.close_ingress_floods('w'), '{"closed": 0}');
select test.tick('1 second');
select test.knock();
select is(test.count_events('ingress_rate_limited'), 4, 'the next drop ends the window and starts another');
select is((select e.meta - 'run_id' from autopost.events e where e.meta ? 'requests'),
	'{"endpoint_id": "in", "requests": 98, "items": 100, "since": "2026-06-01T12:00:00+00:00", "until": "2026-06-01T12:01:00+00:00", "ingress_rps": 0.001}', 'one event, with the count');
select is((select e.attempt || e.result from autopost.events e where e.meta ? 'requests'), '0error');
select ok((select r.finished_at is not null from autopost.ingest_runs r where r.stats_json ? 'requests'),
	'the run is ended');
select is((select r.run_id::text from autopost.ingest_runs r
	where r.stats_json ? 'requests'), (select e.meta ->> 'run_id' from autopost.events e where e.meta ? 'requests'));
select is(test.sum('rate_limited'), 103);

-- Without further drops, the monitor ends the run.
select test.knock() from generate_series(1, 2);
select test.tick('60 seconds');
select is(autopost.close_ingress_floods('w'), '{"closed": 1}');
select is(autopost.close_ingress_floods('w'), '{"closed": 0}', 'once');
select is((select count(*)::int from autopost.events e where e.meta ? 'requests'), 2);
select is((select count(*)::int from autopost.ingest_runs where finished_at is null), 0);
select is(test.sum('rate_limited'), 105);

-- Repeats alone: the answer is what it always is, and what takes something in has a run of its own.
update autopost.workspace_endpoints set ingress_rps = 100000;
create temp table first on commit drop as select autopost.receive_push('w', 'in',
	'[{"text": "x", "source_ref": "1"}]') as answer;
create temp table repeats on commit drop as
	select autopost.receive_push('w', 'in', '[{"text": "x", "source_ref": "1"}]') as answer from generate_series(1, 10);
select is((select count(distinct r.answer -> 'results' #- '{0,status}')::int
	from (select answer from first union all select answer from repeats) r), 1, 'all with the first answer');
select is((select array_agg(distinct r.answer -> 'results' -> 0 ->> 'status') from repeats r), '{duplicate}');
select is(test.count_events('ingress_dedup_dropped'), 2);
select is((select r.stats_json from autopost.ingest_runs r where r.finished_at is null),
	'{"requests": 8, "dedup_dropped": 8}');
select is(test.sum('dedup_dropped'), 10);
select autopost.receive_push('w', 'in', '[{"text": "x", "source_ref": "1"}, {"text": "y", "source_ref": "2"}]');
select is((select (r.stats_json -> 'accepted', r.stats_json -> 'dedup_dropped')::text from autopost.ingest_runs r
	order by r.run_id desc limit 1), '(1,1)', 'one that brings something new is never put among them');
select test.tick('61 seconds');
select is(autopost.close_ingress_floods('w'), '{"closed": 1}');
select is((select e.result from autopost.events e where e.action = 'ingress_dedup_dropped' and e.meta ? 'requests'),
	'ok', 'a repeat is not an error');

select * from finish();
rollback;
