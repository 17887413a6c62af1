-- An endpoint takes a source_ref once while its receipt lives, whichever way the post comes.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(21);

select test.channel('a', p_max_parallel => 100);
create function test.submit(p_text text, p_ref text, p_kind text default 'api', p_endpoint text default 'in') returns jsonb
language sql
as $$
select autopost.submit_post('w', p_endpoint, p_kind, jsonb_build_object('text', p_text, 'source_ref', p_ref))
$$;

create temp table first on commit drop as select test.submit('first', '1') as answer;
create temp table again on commit drop as select test.submit('other text', '1') as answer;
select is((select answer ->> 'status' from first), 'enqueued');
select is((select answer ->> 'status' from again), 'duplicate', 'another text with the same source_ref');
select is((select answer - 'status' from again), (select answer - 'status' - 'deliveries' from first),
	'it gets the ids of the first answer');
select is((select count(*)::int from autopost.messages), 1);
select is((select r.stats_json -> 'dedup_dropped' from autopost.ingest_runs r order by r.run_id desc limit 1), '1');
select is((select e.meta ->> 'source_ref' from autopost.events e where e.action = 'ingress_dedup_dropped'), '1');
select is(test.submit('from the shell', '1', 'command') ->> 'status', 'duplicate', 'a command');
select is(autopost.receive_push('w', 'in', '[{"text": "pushed", "source_ref": "1"}]') -> 'results' -> 0 ->> 'status',
	'duplicate', 'a push');
select is(test.post('{"text": "by SQL", "source_ref": "1"}') ->> 'status', 'duplicate', 'an enqueue');
select is((select array_agg(x.value ->> 'status' order by x.ordinality)
	from jsonb_array_elements(autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'push', '[
		{"text": "b1", "source_ref": "b"}, {"text": "b2", "source_ref": "1"}, {"text": "b3", "source_ref": "b"},
		{"text": "no reference"}]')) with ordinality x), '{enqueued,duplicate,duplicate,enqueued}',
	'and several at once');
select is(autopost.receive_push('w', 'in', '[{"text": "pushed", "source_ref": "b"}]') -> 'results' -> 0 ->> 'status',
	'duplicate', 'what an enqueue brought, a push does not bring again');

-- Another endpoint has its own.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
values ('w', 'in-2', 'webhook_push', repeat('b', 64));
select is(test.submit('elsewhere', '1', 'api', 'in-2') ->> 'status', 'enqueued');

-- Without a reference the channels decide.
select is(autopost.submit_post('w', 'in', 'api', '{"text": "plain"}') -> 'enqueued', '1');
select is((select answer -> 'status' = '"duplicate"' and answer -> 'deliveries' -> 0 -> 'status' = '"deduped"'
	from autopost.submit_post('w', 'in', 'api', '{"text": "plain"}') answer), true);
select is(test.count_events('ingress_dedup_dropped'), 7, 'a suppressed repeat is not dropped by the endpoint');

-- What was rejected may come again.
select is(test.submit('', '2') ->> 'status', 'rejected');
select is(test.submit('corrected', '2') ->> 'status', 'enqueued');
select is(autopost.receive_push('w', 'in', jsonb_build_array(jsonb_build_object('source_ref', '3', 'media',
	jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('c', 64)))))) -> 'results' -> 0
	->> 'status', 'rejected', 'a medium that is not in the store');
select is(test.submit('with it', '3') ->> 'status', 'enqueued');

-- A receipt ends.
select test.tick('73 hours');
select is(test.submit('much later', '1') ->> 'status', 'enqueued');
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');

select * from finish();
rollback;
