-- The id of a signed request is accepted once. A repeat returns the first answer.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(19);

select test.channel('a');
create function test.push(p_id text, p_items jsonb) returns jsonb
language sql
as $$
select autopost.receive_signed_push('w', 'in', p_id, p_items)
$$;

create temp table one on commit drop as select test.push('msg-1', '[{"text": "x"}]') as answer;
select is((select answer -> 'results' -> 0 ->> 'status' from one), 'enqueued');
select test.tick('1 hour');
create temp table two on commit drop as select test.push('msg-1', '[{"text": "x"}]') as answer;
select is((select answer -> 'results' -> 0 ->> 'status' from two), 'duplicate',
	'long after the window in which the same text is dropped');
select is((select answer -> 'results' -> 0 ->> 'message_id' from two), (select answer -> 'results' -> 0 ->> 'message_id'
	from one), 'with the first answer');
select is((select answer -> 'results' -> 0 ->> 'run_id' from two), (select answer ->> 'run_id' from one));
select is(test.push('msg-1', '[{"text": "something else"}, {"text": "and more"}]') -> 'results' -> 1,
	'{"status": "duplicate"}', 'whatever the body says');
select is((select count(*)::int from autopost.messages), 1, 'nothing is stored');
select is((select count(*)::int from autopost.deliveries), 1);
select is(test.count_events('ingress_dedup_dropped'), 3);
select is((select sum((stats_json ->> 'dedup_dropped')::int)::int from autopost.ingest_runs), 3,
	'each in a run that says so');
select is(test.push('msg-2', '[{"text": "y"}]') -> 'results' -> 0 ->> 'status', 'enqueued',
	'another id is another request');

-- Rejected items stay rejected. A completely rejected request may be repeated.
select test.push('msg-3', '[{"text": "z"}, {}]');
create temp table mixed on commit drop as select test.push('msg-3', '[{"text": "z"}, {}]') as answer;
select is((select jsonb_path_query_array(answer, '$.results[*].status') from mixed), '["duplicate", "rejected"]');
select ok((select answer -> 'results' -> 1 ? 'errors' from mixed));
select is((select (r.stats_json -> 'dedup_dropped', r.stats_json -> 'rejected')::text from autopost.ingest_runs r
	order by r.run_id desc limit 1), '(1,1)');
select is(test.push('msg-4', '[{}]') -> 'results' -> 0 ->> 'status', 'rejected');
select is(test.push('msg-4', '[{"text": "corrected"}]') -> 'results' -> 0 ->> 'status', 'enqueued');

-- An id is the endpoint's own, and is forgotten in time.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'second', 'webhook_push', repeat('b', 64));
select is(autopost.receive_signed_push('w', 'second', 'msg-1',
	'[{"text": "from there"}]') -> 'results' -> 0 ->> 'status', 'enqueued');
select test.tick('71 hours');
select is(test.push('msg-1', '[{"text": "late"}]') -> 'results' -> 0 ->> 'status', 'enqueued',
	'after 72 hours its timestamp is long past');
select test.tick('72 hours');
select autopost.purge_receipts('w');
select is((select count(*)::int from autopost.signed_requests), 0, 'receipts and ids go alike');
select is((select count(*)::int from autopost.verify('w') v where v.violations > 0), 0);

select * from finish();
rollback;
