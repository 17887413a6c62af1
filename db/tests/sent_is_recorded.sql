begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);

select test.channel('a');
select test.say('x');
select test.claimed();
select test.start('a');
select test.tick('3 seconds');
create temp table r on commit drop as
select autopost.mark_sent('w', d.delivery_id, d.claim_token, '55', '2020-01-01', '{"ids": ["55", "56"]}') as answer
	from test.row('a') d;
select is((select answer from r), '{"applied": true, "status": "sent", "attempt": 1}');
select is((test.row('a')).provider_message_id, '55');
select is((test.row('a')).sent_at, autopost.now_ts(), 'the database''s time decides');
select is((select (e.meta -> 'raw' ->> 'sent_at')::timestamptz from autopost.events e where e.action = 'sent'),
	'2020-01-01'::timestamptz, 'the platform''s is kept');
select is((select e.meta -> 'raw' -> 'raw' -> 'ids' from autopost.events e where e.action = 'sent'), '["55", "56"]',
	'with what it answered');
select is((select e.attempt from autopost.events e where e.action = 'sent'), 1);
select is((select e.meta ->> 'trace_id' from autopost.events e
	where e.action = 'sent'), (test.row('a')).trace_id::text);
select is((test.row('a')).claim_token, null, 'the claim is over');
select is((test.row('a')).finished_at, autopost.now_ts());
select is((test.row('a')).last_call_at, autopost.now_ts() - interval '3 seconds');
select is((test.gate('a')).last_provider_message_id, '55', 'the newest post that stands in the channel');
select is((test.gate('a')).inflight, 0);

-- Many at once: one answer each, in their order.
select test.channel('b');
update autopost.channels set enabled = channel_id = 'b';
select test.say('y');
select test.claimed();
create temp table many on commit drop as
select autopost.mark_sent_batch('w', jsonb_build_array(
	jsonb_build_object('delivery_id', (test.row('a')).delivery_id, 'claim_token', 'lost', 'provider_message_id', '1'),
	jsonb_build_object('delivery_id', (test.row('b')).delivery_id, 'claim_token', (test.row('b')).claim_token,
		'provider_message_id', '2'))) as answer;
select is((select jsonb_path_query_array(answer, '$[*].applied') from many), '[false, true]');
select is((test.row('b')).provider_message_id, '2');
select is((test.row('a')).provider_message_id, '55');

select * from finish();
rollback;
