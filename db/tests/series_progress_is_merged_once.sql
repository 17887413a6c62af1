-- A delivery with several calls stores each acknowledged step at once and never repeats it.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(29);

select test.channel('a', p_rate_rps => 2);
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(n::text, 64), 'file:///' || n, 10 from generate_series(1, 3) n;
select test.post(jsonb_build_object('text', repeat('long ', 300), 'media', (
	select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat(n::text, 64)) order by n)
		from generate_series(1, 3) n)));
select is(jsonb_path_query_array((test.row('a')).render_meta, '$.steps[*].step'), '["text", "media-1"]');
create temp table c on commit drop as select * from test.claim();
select test.start('a');
select test.tick('2 seconds');

create function test.progress(p_delta jsonb) returns jsonb
language sql
as $$
select autopost.record_series_progress('w', c.delivery_id, c.claim_token, p_delta) from c
$$;
create temp table p on commit drop as select test.progress('{"step": "text", "ids": ["11"]}') as answer;
select is((select answer ->> 'applied' from p), 'true');
select is((select (answer ->> 'send_at')::timestamptz from p), autopost.now_ts(),
	'the next step has a slot of its own');
select is((test.channel_row('a')).next_allowed_at, autopost.now_ts() + interval '1.5 seconds',
	'an album costs its items');
select is((select (answer ->> 'lease_until')::timestamptz from p), autopost.now_ts() + interval '300 seconds',
	'and the lease starts again');
select is((test.row('a')).sending_lease_until, autopost.now_ts() + interval '300 seconds');
select is((test.row('a')).render_meta -> 'series_progress',
	'{"steps": {"text": ["11"]}, "sent_items": [], "provider_message_ids": ["11"]}');

select is(test.progress('{"step": "text", "ids": ["99"]}') ->> 'applied', 'true', 'repeated: accepted');
select is((test.row('a')).render_meta -> 'series_progress',
	'{"steps": {"text": ["11"]}, "sent_items": [], "provider_message_ids": ["11"]}',
	'and ignored: the first ids stand');
select test.progress('{"step": "media-1", "ids": ["12", "13", "14"], "items": [0, 1, 2]}');
select is((test.row('a')).render_meta -> 'series_progress',
	'{"steps": {"text": ["11"], "media-1": ["12", "13", "14"]}, "sent_items": [0, 1, 2], "provider_message_ids": ["11", "12", "13", "14"]}');
select is((test.row('a')).attempt, 1);

-- The next attempt gets the posted steps.
select test.commit('a', test.failure('TRANSIENT', 'delivery', 'http_500'));
select test.tick('1 hour');
create temp table again on commit drop as select * from test.claim();
select is((select render_meta -> 'series_progress' ->> 'sent_items' from again), '[0, 1, 2]',
	'a retry sends the tail only');
select test.commit('a', test.sent('11'));
select is((test.row('a')).render_meta -> 'series_progress' -> 'steps' ->> 'text', '["11"]', 'a commit keeps it');

-- A worker whose claim is over: the platform has the step, so it is kept while the delivery lives;
-- the worker must stop.
select test.tick('1 hour');
select test.post(jsonb_build_object('text', repeat('late ', 300), 'media', (
	select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat(n::text, 64)) order by n)
		from generate_series(1, 2) n)));
delete from c;
insert into c select * from test.claim();
select autopost.release_claims('w', array(select claim_token from c));
create temp table gate_before on commit drop as select (test.channel_row('a')).next_allowed_at;
select is(test.progress('{"step": "text", "ids": ["21"]}') ->> 'reason', 'stale');
select is((test.row('a')).render_meta -> 'series_progress' -> 'steps', '{"text": ["21"]}', 'kept for the next attempt');
select is((test.row('a')).status, 'retry');
select is((test.channel_row('a')).next_allowed_at, (select next_allowed_at from gate_before),
	'a stale worker takes no slot');
select test.tick('1 hour');
select test.claimed();
select is(test.progress('{"step": "media-1", "ids": ["22"], "items": [0, 1]}') ->> 'applied', 'false',
	'also while somebody else holds it');
select is((test.row('a')).render_meta -> 'series_progress' -> 'steps' ->> 'media-1', '["22"]');
create temp table lease_before on commit drop as select (test.row('a')).sending_lease_until;
select test.tick('10 seconds');
select test.progress('{"step": "text", "ids": ["21"]}');
select is((test.row('a')).sending_lease_until, (select sending_lease_until from lease_before),
	'whose lease it does not renew');
-- A commit adds unreported steps and removes none.
select test.commit('a', test.sent('21') || '{"raw": {"steps": {"text": ["99"], "more": ["24"]}}}');
select is((test.row('a')).render_meta -> 'series_progress' -> 'steps',
	'{"text": ["21"], "more": ["24"], "media-1": ["22"]}', 'a commit merges what it knows of the steps');
create temp table done on commit drop as select (test.row('a')).render_meta;
select is(test.progress('{"step": "extra", "ids": ["23"]}') ->> 'applied', 'false');
select is((test.row('a')).render_meta, (select render_meta from done), 'a final delivery changes no more');
select is(autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't',
	'{"step": "x", "ids": []}') ->> 'applied', 'false', 'nor one that is not there');

-- The cost of the next step.
select is(autopost.step_cost('{"steps": [{"step": "text"}, {"step": "media-1", "items": [0, 1, 2]}]}'), 1,
	'a message costs one');
select is(autopost.step_cost('{"steps": [{"step": "media-1", "items": [0, 1, 2]}]}'), 3, 'an album its items');
select is(autopost.step_cost('{"steps": [{"step": "text"}, {"step": "media-1", "items": [0, 1]}], "series_progress": {"steps": {"text": ["1"]}}}'), 2, 'the next one that is missing counts');
select is(autopost.step_cost('{"steps": [{"step": "text"}], "series_progress": {"steps": {"text": ["1"]}}}'), 1);
select is(autopost.step_cost('{}'), 1);

select * from finish();
rollback;
