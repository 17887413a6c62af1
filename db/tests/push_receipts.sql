-- A repeated source_ref is a duplicate. It gets the ids of the first post.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(21);

select test.channel('a');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'second', 'webhook_push', repeat('b', 64));
create function test.push(p_raw jsonb, p_endpoint text default 'in') returns jsonb
language sql
as $$
select autopost.receive_push('w', p_endpoint, jsonb_build_array(p_raw)) -> 'results' -> 0
$$;

create temp table one on commit drop as select test.push('{"text": "x", "source_ref": "cms-1"}') as answer;
select is((select answer ->> 'status' from one), 'enqueued');
select is((select answer ->> 'enqueued' from one), '1');
select ok((select answer ? 'run_id' and answer ? 'trace_id' and answer ? 'message_id' from one));
select test.tick('71 hours 59 minutes');
create temp table two on commit drop as select test.push('{"text": "corrected", "source_ref": "cms-1"}') as answer;
select is((select answer ->> 'status' from two), 'duplicate', 'the reference counts, not the text');
select is((select answer - 'status' from two), (select answer - 'status' from one), 'with the first answer');
select is((select count(*)::int from autopost.messages), 1, 'nothing is stored');
select is(test.count_events('ingress_dedup_dropped'), 1);
select is((select e.meta ->> 'source_ref' from autopost.events e where e.action = 'ingress_dedup_dropped'), 'cms-1');
select is((select r.stats_json from autopost.ingest_runs r order by r.run_id desc limit 1),
	'{"accepted": 0, "dedup_dropped": 1, "rejected": 0, "enqueued": 0, "deduped": 0, "validation_failed": 0, "skipped": 0}', 'counted in the run, and as nothing else');
select ok((select bool_and(r.finished_at is not null) from autopost.ingest_runs r), 'every run is ended');
select is(test.push('{"text": "corrected", "source_ref": "cms-1"}', 'second') ->> 'status', 'enqueued',
	'another endpoint has references of its own');
select test.tick('1 minute');
select is(test.push('{"text": "third", "source_ref": "cms-1"}') ->> 'status', 'enqueued', 'after 72 hours it is new');
select is((select count(*)::int from autopost.ingress_receipts where source_ref = 'cms-1'), 2,
	'the old receipt is replaced');

-- A receipt stands for what was stored: a wrong post leaves none and may come again, corrected.
select is(test.push('{"source_ref": "cms-2"}') ->> 'status', 'rejected');
select is((select count(*)::int from autopost.ingress_receipts where source_ref = 'cms-2'), 0);
select is(test.push('{"source_ref": "cms-2", "text": "now"}') ->> 'status', 'enqueued');
select is((select count(*)::int from autopost.ingress_receipts r where r.answer ->> 'message_id' is null), 0,
	'every receipt has its message');

-- The content that every channel has already: the receipt is new, the post is stored, nothing is enqueued.
create temp table known on commit drop as select test.push('{"text": "now", "source_ref": "cms-3"}') as answer;
select is((select answer ->> 'status' from known), 'enqueued', 'a new reference is a new post');
select is((select (answer ->> 'enqueued') || (answer ->> 'deduped') from known), '01', 'of which nothing was enqueued');

select is(test.push('{"text": "x2", "colour": "red", "size": 3}') -> 'warnings', '["colour", "size"]',
	'unknown fields are named');
select is(test.push('{"text": "x3"}') -> 'warnings', null);

select * from finish();
rollback;
