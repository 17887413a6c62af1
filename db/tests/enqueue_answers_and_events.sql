begin;
\ir fake_clock.sql
\ir world.sql
select plan(28);

select test.channel(c) from unnest('{a,b,narrow,off}'::text[]) c;
update autopost.channels set enabled = false where channel_id = 'off';
update autopost.channels set send_mode = 'media' where channel_id = 'narrow';
select test.channel('max', p_platform => 'max');

create temp table r on commit drop as
	select test.post('{"text": "<b>x</b>", "parse_mode": "HTML", "variants": {"max": {"text": "<b>x"}}}') as answer;
select is((select answer ->> 'status' from r), 'enqueued');
select is((select jsonb_build_array(answer -> 'enqueued', answer -> 'deduped', answer -> 'invalid', answer -> 'skipped')
	from r), '[2, 0, 1, 1]', 'every routed channel is counted once');
select is((select answer ->> 'fanout' from r), 'done');
select is((select string_agg((d.value ->> 'channel_id') || ' ' || (d.value ->> 'status'), ', ' order by d.ordinality)
	from r, jsonb_array_elements(answer -> 'deliveries') with ordinality d),
	'a queued, b queued, max failed_permanent, narrow skipped', 'and named');
select is((select count(*)::int from r, jsonb_array_elements(answer -> 'deliveries') d
	join autopost.deliveries x on x.delivery_id = (d.value ->> 'delivery_id')::uuid), 3);
select is(test.count_events('enqueue'), 1, 'one event a message and run');
select is(test.count_events('validation_failed'), 1);
select is((select row(attempt, granted_attempts, not_before, status)::text from test.row('a')),
	row(0, 0, autopost.now_ts(), 'queued')::text);
select is((select count(distinct trace_id)::int from autopost.deliveries), 1, 'one trace');
select is((select r2.stats_json - 'rejected' from autopost.ingest_runs r2),
	'{"accepted": 1, "dedup_dropped": 0, "enqueued": 2, "deduped": 0, "validation_failed": 1, "skipped": 1}');
select is((select kind || ' ' || (finished_at is not null) from autopost.ingest_runs), 'api true');

-- An invalid post is rejected and does not block others.
create temp table many on commit drop as
select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'command',
	'[{"text": ""}, {"text": "y"}, {"text": "z", "media": "no"}, 7, {"text": "y"}]') as answer;
select is((select jsonb_path_query_array(answer, '$[*].status') from many),
	'["rejected", "enqueued", "rejected", "rejected", "duplicate"]');
select is((select jsonb_path_query_array(answer, '$[*].errors[0].field') from many), '["text", "media", ""]');
select ok((select bool_and(e.value ?& array['field', 'reason', 'remedy'])
	from many, jsonb_path_query(answer, '$[*].errors[*]') e (value)), 'each error says what, why and what to do');
select is((select count(*)::int from autopost.messages), 2);
select is((select stats_json -> 'rejected' from autopost.ingest_runs where kind = 'command'), '3');

-- A disabled workspace, a time ahead, an unknown kind.
update autopost.workspaces set status = 'disabled';
select throws_ok($$select test.say('q')$$, 'AP001', null, 'a disabled workspace takes nothing');
update autopost.workspaces set status = 'active';
select test.tick('1 second');
select test.post('{"text": "later", "scheduled_for": "2026-06-01T15:30:00+03:00"}');
select is((test.row('a')).scheduled_for, '2026-06-01 12:30:00+00'::timestamptz, 'an instant has its offset');
select is((test.row('a')).due_at, '2026-06-01 12:30:00+00'::timestamptz);
select is(test.post('{"text": "q", "scheduled_for": "2026-06-01 15:30"}') -> 'errors' -> 0 ->> 'field', 'scheduled_for',
	'it needs a time zone');
select is(test.post('{"text": "q", "scheduled_for": "2026-02-30T00:00:00Z"}') ->> 'status', 'rejected',
	'nor is a day that does not exist');

-- Many channels: the answer names the first thousand, the counts are of all; so do the events of a repetition.
select test.tick('1 second');
select test.channel('c' || lpad(n::text, 4, '0')) from generate_series(1, 1001) n;
update autopost.channels set enabled = channel_id ~ '^c\d';
create temp table crowd on commit drop as select test.say('to all') as answer;
select is((select (answer ->> 'enqueued') || ' ' || jsonb_array_length(answer -> 'deliveries') from crowd),
	'1001 1000');
create temp table again on commit drop as select test.say('to all') as answer;
select is((select (answer ->> 'deduped') || ' ' || (answer ->> 'status') from again), '1001 duplicate');
select is((select jsonb_array_length(e.meta -> 'channels') from autopost.events e
	where e.action = 'dedup_suppressed' and e.channel_id is null), 1001, 'above a thousand one event names them all');
select is((select count(*)::int from autopost.events e where e.action = 'dedup_suppressed' and e.channel_id ~ '^c\d'),
	0);

-- An item of a batch is what the function of one post takes, or the post itself.
create temp table both_ways on commit drop as
select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'command',
	'[{"raw_payload": {"text": "named"}}, {"text": "named"}, {"raw_payload": null}]') as answer;
select is((select jsonb_path_query_array(answer, '$[*].status') from both_ways),
	'["enqueued", "duplicate", "rejected"]');
select is(test.post('{"raw_payload": {"text": "inner"}}') ->> 'status', 'rejected', 'a post is not an item');
select throws_ok($$select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'command',
	'[{"raw_payload": {"text": "x"}, "kind": "push"}]')$$, 'AP001',
	'argument items: must have items without fields next to raw_payload');

select * from finish();
rollback;
