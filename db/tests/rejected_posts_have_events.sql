-- A rejected post has an event with its first error, whichever way it comes. Many share one.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

update autopost.settings set value = '2' where key = 'ingress_drops_per_second';
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
values ('w', 'feed-in', 'pull_source', 'feed');
create function test.events() returns jsonb[]
language sql
as $$
select coalesce(array_agg(e.meta - 'run_id' order by e.id), '{}') from autopost.events e
where e.action = 'ingress_payload_rejected'
$$;
create function test.forget() returns void
language sql
as $$
delete from autopost.events;
delete from autopost.ingress_floods
$$;

create temp table pulled on commit drop as select autopost.ingest_pull_chunk('w', 'feed', 'feed-in', '[
	{"source_ref": "good", "payload": {"text": "x"}}, {"source_ref": "bad", "payload": {"text": " "}}]') as answer;
select is((select answer -> 'rejected' from pulled), '1');
select is(test.events(), array['{"endpoint_id": "feed-in", "source_id": "feed", "source_ref": "bad", "field": "text",
	"reason": "the post is empty", "items": 1}']::jsonb[], 'an item of a feed');
select is((select e.meta ->> 'run_id' from autopost.events e where e.action = 'ingress_payload_rejected'),
	(select answer ->> 'run_id' from pulled));
select is((select e.result from autopost.events e where e.action = 'ingress_payload_rejected'), 'error');
select is((select i.value ->> 'source_ref' from pulled,
	jsonb_array_elements(autopost.get_run('w', (answer ->> 'run_id')::uuid) -> 'items') i
	where i.value ->> 'status' = 'rejected'), 'bad', 'the run names the item');
select is((select autopost.why('w', (answer ->> 'run_id')::uuid) -> 'now' ->> 'sentence' from pulled),
	'the pull run of source feed took 1 posts, dropped 0 duplicates and rejected 1; bad: text the post is empty');
select is(autopost.ingest_pull_chunk('w', 'feed', 'feed-in', '[{"source_ref": "bad", "payload": {"text": " "}}]')
	-> 'duplicate', '1', 'the source shows it again');
select is(cardinality(test.events()), 1);

select test.forget();
select autopost.ingest_pull_chunk('w', 'feed', 'feed-in', (select jsonb_agg(jsonb_build_object('source_ref', 'n' || n,
	'payload', '{"text": ""}'::jsonb)) from generate_series(1, 50) n));
select is((select array_agg(e -> 'items') from unnest(test.events()) e), '{1,49}', 'the last event counts the rest');

select test.forget();
select test.post('{"source_ref": "s", "media": [{"type": "image"}]}');
select autopost.submit_post('w', 'in', 'command', '{"text": 7}');
select is(test.events(), array[
	'{"endpoint_id": "in", "source_ref": "s", "field": "media[0]", "reason": "has no content", "items": 1}',
	'{"endpoint_id": "in", "field": "text", "reason": "must be a JSON string", "items": 1}']::jsonb[]);

-- Pushes.
select test.forget();
create temp table pushed on commit drop as
select autopost.receive_push('w', 'in', '[{"text": "", "source_ref": "p"}, {"text": "fine"}]') as answer;
select is((select answer -> 'results' -> 0 ->> 'source_ref' from pushed), 'p');
select is(test.events(), array['{"endpoint_id": "in", "source_ref": "p", "field": "text", "reason": "the post is empty",
	"items": 1}']::jsonb[]);
create temp table many on commit drop as
select autopost.receive_push('w', 'in', '[{"text": ""}, {"text": "fine", "source_ref": "r"}]') as answer
union all
select autopost.receive_push('w', 'in', '[{"text": ""}, {"text": "fine", "source_ref": "r"}]') from generate_series(1, 10);
select is(cardinality(test.events()), 4, 'a push with a new post has events of its own, above a rate the others share one');
select is((select r.stats_json from autopost.ingest_runs r where r.finished_at is null),
	'{"requests": 8, "payload_rejected": 8, "dedup_dropped": 8}', 'and are counted exactly');
select is((select count(distinct answer -> 'run_id')::int from many), 4);
select ok((select bool_and(answer -> 'run_id' = answer -> 'results' -> 0 -> 'run_id') from many),
	'the answer names the run that exists');
select test.tick('61 seconds');
select autopost.close_ingress_floods('w');
select is((select e.meta - 'run_id' - 'since' - 'until' from autopost.events e where e.meta ? 'requests'),
	'{"endpoint_id": "in", "field": "text", "reason": "the post is empty", "requests": 8, "items": 8}');

select * from finish();
rollback;
