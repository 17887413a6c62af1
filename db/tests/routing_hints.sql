-- routing narrows one enqueue and is not part of the content.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(19);

select test.channel(c) from unnest('{a,b,c}'::text[]) c;
update autopost.channels set route_filter = '{"include_any": ["x"]}' where channel_id = 'c';
create function test.goes_to(p_raw text) returns text
language sql
as $$
select coalesce(string_agg(d.value ->> 'channel_id', ',' order by d.value ->> 'channel_id'), '')
	from jsonb_array_elements(test.post(p_raw::jsonb) -> 'deliveries') d
$$;
select is(test.goes_to('{"text": "1", "routing": {"include_channels": ["b"]}}'), 'b');
select is(test.goes_to('{"text": "2", "routing": {"exclude_channels": ["b"]}}'), 'a');
select is(test.goes_to('{"text": "3", "routing": {"include_channels": ["a", "b"], "exclude_channels": ["a"]}}'), 'b');
select is(test.goes_to('{"text": "4", "routing": {"include_channels": ["c"]}}'), '',
	'a hint does not lift the channel''s own filter');
select is(test.goes_to('{"text": "5", "routing": {"include_channels": ["nobody"]}}'), '');
select is(test.goes_to('{"text": "6", "routing": {"include_channels": []}}'), '', 'an empty list includes nobody');
select is(test.goes_to('{"text": "7", "routing": {}}'), 'a,b');
select is((test.post('{"text": "1", "routing": {"include_channels": ["a"]}}') ->> 'message_id'),
	(test.post('{"text": "1"}') ->> 'message_id'), 'the same content under another hint is the same message');
select is((select count(*)::int from autopost.deliveries d join autopost.messages m using (workspace_id, message_id)
	where m.payload ->> 'text' = '1'), 2, 'with one delivery a channel');

-- A channel that is not there gets nothing, and that is said.
create function test.pushed(p_routing jsonb) returns jsonb
language sql
as $$
select autopost.receive_push('w', 'in',
	jsonb_build_array(jsonb_build_object('text', p_routing::text, 'routing', p_routing))) -> 'results' -> 0
$$;
select is(test.pushed('{"include_channels": ["nope", "a", "nope"], "exclude_channels": ["none"]}') -> 'warnings',
	'["routing.exclude_channels.none", "routing.include_channels.nope"]');
select is(test.pushed('{"include_channels": ["nope"]}') - 'run_id' - 'trace_id' - 'message_id',
	'{"status": "enqueued", "enqueued": 0, "deduped": 0, "invalid": 0, "skipped": 0, "fanout": "done", "warnings": ["routing.include_channels.nope"]}');
select is(test.pushed('{"include_channels": ["a", "b"]}') -> 'warnings', null);
create temp table posted on commit drop as select autopost.submit_post('w', null, 'command',
	'{"text": "by hand", "routing": {"include_channels": ["nope"]}}') as answer;
select is((select answer -> 'warnings' from posted), '["routing.include_channels.nope"]');
select is((select autopost.get_run('w', (answer ->> 'run_id')::uuid) #> '{items,0,warnings}' from posted),
	'["routing.include_channels.nope"]', 'and stays with the run');
select is(autopost.plan('w', '{"text": "planned", "routing": {"include_channels": ["nope"]}}', null) -> 'warnings',
	'["routing.include_channels.nope"]');

-- Routing hints of a post stay on its run.
create function test.hints(p_answer jsonb) returns jsonb
language sql
as $$
select jsonb_agg(h - 'trace_id')
	from jsonb_array_elements(autopost.get_run('w', (p_answer ->> 'run_id')::uuid) -> 'hints') h
$$;
select is(test.hints(test.post('{"text": "8", "routing": {"include_channels": ["a"]}}')),
	'[{"routing": {"include_channels": ["a"]}}]');
select is(test.hints(test.post('{"text": "9", "tags": ["own"], "routing": {}}')), null);
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
	values ('w', 'feed', 'pull_source', 'feed');
select is(test.hints(autopost.ingest_pull_chunk('w', 'feed', 'feed', '[{"source_ref": "1", "payload": {"text": "item"}, "tags": ["hot"]}, {"source_ref": "2", "payload": {"text": "other"}}]')),
	'[{"tags": ["hot"]}]');
create temp table pushed on commit drop as
select autopost.receive_push('w', 'in', '[{"text": "10", "media": [{"type": "image", "url": "https://e.x/1.png"}], "routing": {"exclude_channels": ["b"]}}]') as answer;
create temp table taken on commit drop as select * from autopost.claim_submissions('w', 'run-1', 1);
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
select autopost.commit_submission('w', t.submission_id, t.claim_token,
	jsonb_build_object('ok', true, 'media',
	jsonb_build_array(jsonb_build_object('index', 0, 'blob_ref', 'sha256:' || repeat('1', 64))))) from taken t;
select is((select test.hints(answer) from pushed), '[{"routing": {"exclude_channels": ["b"]}}]',
	'also when its media had to be fetched first');

select * from finish();
rollback;
