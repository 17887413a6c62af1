begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

select test.channel('a', p_max_parallel => 100);
create temp table r on commit drop as select autopost.receive_push('w', 'in', '[
	{"text": "zeta", "source_ref": "9"},
	{"text": ""},
	{"text": "alpha", "source_ref": "1"},
	{"text": "zeta again", "source_ref": "9"},
	"no post",
	{"text": "alpha", "source_ref": "5"},
	{"text": "with a picture", "media": [{"type": "image", "url": "https://e.x/1.png"}]}
]') as answer;
select is((select array_agg(x.value ->> 'status' order by x.ordinality)
	from r, jsonb_array_elements(answer -> 'results') with ordinality x),
	'{enqueued,rejected,enqueued,duplicate,rejected,enqueued,accepted}', 'one answer a post, in their order');
select is((select answer -> 'results' -> 1 -> 'errors' -> 0 ->> 'field' from r), 'text',
	'a wrong one says what is wrong');
select is((select answer -> 'results' -> 4 -> 'errors' -> 0 ->> 'reason' from r), 'a post must be a JSON object');
select is((select answer -> 'results' -> 3 ->> 'message_id' from r), (select answer -> 'results' -> 0 ->> 'message_id'
	from r), 'a repetition inside the array, too');
select is((select answer -> 'results' -> 5 ->> 'message_id' from r), (select answer -> 'results' -> 2 ->> 'message_id'
	from r), 'the same content is one message');
select is((select (answer -> 'results' -> 5 ->> 'enqueued') || (answer -> 'results' -> 5 ->> 'deduped') from r), '01');
select is((select count(distinct x.value ->> 'run_id')::int from r, jsonb_array_elements(answer -> 'results') x), 1,
	'one run');
select is((select answer ->> 'run_id' from r), (select run_id::text from autopost.ingest_runs));
select is((select r.stats_json - 'skipped' - 'validation_failed' from autopost.ingest_runs r),
	'{"accepted": 4, "rejected": 2, "dedup_dropped": 1, "enqueued": 2, "deduped": 1}');
select is((select jsonb_array_length(items) from autopost.ingest_runs), 7);

select test.tick('1 second');
select is((select array_agg(rendered_text) from test.claim()), '{zeta,alpha}',
	'a channel gets the posts in the order of the array');
select is((select count(*)::int from autopost.submissions), 1);

select throws_ok($$select autopost.receive_push('w', 'in', '[]')$$, 'AP001', null, 'an empty array');
select throws_ok($$select autopost.receive_push('w', 'in', '{"text": "x"}')$$, 'AP001', null, 'no array');
select throws_ok($$select autopost.receive_push('w', 'in', (select jsonb_agg(jsonb_build_object('text', n))
	from generate_series(1, 101) n))$$, 'AP001', null, 'more than 100');
select is((select jsonb_array_length(autopost.receive_push('w',
	'in', (select jsonb_agg(jsonb_build_object('text', 't' || n)) from generate_series(1, 100) n)) -> 'results')), 100);
-- All or nothing: what raises leaves no receipt.
select is((select count(*)::int from autopost.ingress_receipts), 4 + 100);

select * from finish();
rollback;
