begin;
\ir fake_clock.sql
\ir world.sql
select plan(12);

select test.channel('a');
create temp table one on commit drop as
	select test.post('{"text": "Same  words", "tags": ["First"], "source_ref": "s1", "colour": "red"}') as answer;
create temp table first on commit drop as select m.* from autopost.messages m;
select test.tick('1 hour');
create temp table two on commit drop as
	select test.post('{"text": "Same words ", "tags": ["second"], "source_ref": "s2", "colour": "blue"}') as answer;

select is((select count(*)::int from autopost.messages), 1, 'one row a content');
select is((select answer ->> 'message_id' from two), (select answer ->> 'message_id' from one));
select is((select row(m.payload, m.tags, m.source, m.source_ref, m.first_seen_trace_id, m.first_ingest_run_id,
	m.created_at)::text from autopost.messages m),
	(select row(f.payload, f.tags, f.source, f.source_ref, f.first_seen_trace_id, f.first_ingest_run_id,
		f.created_at)::text from first f), 'what was first seen stays');
select is((select source from first),
	'{"kind": "api", "endpoint_id": "in", "source_id": null, "fields": {"colour": "red"}}',
	'the source has the way of the post and its unknown fields');
select is((select autopost.get_message('w', f.message_id) -> 'source' from first f), (select source from first));
select is((select l.source from autopost.list_messages('w', '{}', 1) l),
	'{"kind": "api", "endpoint_id": "in", "source_id": null}', 'a list shows the way only');
select is((select seen_count from autopost.messages), 2::bigint);
select is((select last_seen_at from autopost.messages), autopost.now_ts());
select is((select last_ingest_run_id::text from autopost.messages), (select answer ->> 'run_id' from two));
select is((select e.meta - 'run_id' from autopost.events e where e.action = 'message_tag_mismatch'),
	'{"now": ["second"], "first_seen": ["first"]}',
	'other tags are noted, not taken');
select test.post('{"text": "Same words", "tags": ["FIRST"]}');
select is(test.count_events('message_tag_mismatch'), 1, 'the same tags are no mismatch');
select isnt((test.say('other words') ->> 'message_id'), (select answer ->> 'message_id' from one));

select * from finish();
rollback;
