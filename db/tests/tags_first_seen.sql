begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

create function test.tags(p_raw text) returns text[]
language sql
as $$
select autopost.tags_of(p_raw::jsonb, autopost.normalize_payload(p_raw::jsonb))
$$;
select is(test.tags('{"text": "x"}'), '{}');
select is(test.tags('{"text": "x", "tags": ["B", "a", "b"]}'), '{a,b}', 'folded, sorted, once');
select is(test.tags('{"text": "x", "tags": [" #Sale "]}'), '{sale}');
select is(test.tags('{"text": "Новость #Москва и #СПб"}'), '{москва,спб}', 'in any alphabet');
select is(test.tags('{"text": "#one,#two; (#three)"}'), '{one,three,two}');
select is(test.tags('{"text": "##x a#b &#39; http://h/#top #1 #2026 #_ #v2"}'), '{v2}',
	'no anchors, entities, or bare numbers');
select is(test.tags('{"text": "#a", "tags": ["a"]}'), '{a}');
select is(test.tags(format('{"text": "x", "tags": ["%s", "%s"]}', U&'caf\00e9', U&'cafe\0301')), array[U&'caf\00e9'],
	'composed and decomposed are one');

select test.channel('a');
update autopost.channels set route_filter = '{"include_any": ["hot"]}';
select test.post('{"text": "x", "tags": ["cold"]}');
select is((select tags from autopost.messages), '{cold}');
create temp table again on commit drop as select test.post('{"text": "x", "tags": ["hot"]}') as answer;
select is((select answer ->> 'enqueued' from again), '1', 'an enqueue is routed by its own tags');
select is((select tags from autopost.messages), '{cold}', 'the message keeps those it was first seen with');
select is(test.count_events('message_tag_mismatch'), 1);

-- A source's tags route that item, and stay off the message.
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
	values ('w', 'feed', 'pull_source', 'feed');
create temp table pulled on commit drop as
select autopost.ingest_pull_chunk('w', 'feed', 'feed',
	'[{"source_ref": "1", "payload": {"text": "item", "tags": ["own"]}, "tags": ["hot"]}]') as answer;
select is((select answer -> 'results' -> 0 ->> 'enqueued' from pulled), '1', 'the tags of a source route');
select is((select tags from autopost.messages where payload ->> 'text' = 'item'), '{own}',
	'but are none of the content''s');
select is(test.count_events('message_tag_mismatch'), 1);
select is((select route_filter from test.channel_row('a')), '{"include_any": ["hot"]}');

select * from finish();
rollback;
