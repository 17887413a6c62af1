-- With dedup_audit_rows on, each channel that has a repeated post gets a delivery with status
-- deduped. It affects nothing else.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(23);

select test.channel('a');
select test.channel('b');
select test.say('x');
select is(test.say('x') -> 'deliveries' -> 0,
	'{"channel_id": "a", "status": "deduped", "reason": "the channel has this content already"}',
	'by default a repeat is only answered');
select is((select count(*)::int from autopost.deliveries), 2, 'and leaves no row');

select test.set('dedup_audit_rows', 'true');
select throws_like($$select test.set('dedup_audit_rows', '1')$$, '%dedup_audit_rows must be%');
select test.tick('1 minute');
create temp table again on commit drop as select test.say('x') as answer;
select is((select answer - 'deliveries' - 'run_id' - 'trace_id' - 'message_id' from again),
	'{"status": "duplicate", "enqueued": 0, "deduped": 2, "invalid": 0, "skipped": 0, "fanout": "done"}',
	'the answer counts alike');
select results_eq($$select d.channel_id, d.status, d.attempt, d.rendered_text, d.finished_at, d.trace_id::text,
	d.message_id = (select m.message_id from autopost.messages m) from autopost.deliveries d where d.status = 'deduped'
	order by 1$$,
	$$select c, 'deduped', 0, 'x', autopost.now_ts(), answer ->> 'trace_id', true
		from again, unnest('{a,b}'::text[]) c$$, 'a delivery a channel, of the post and the run');
select is((select array_agg(d.delivery_id::text order by d.channel_id) from autopost.deliveries d
	where d.status = 'deduped'),
	(select array_agg(x ->> 'delivery_id') from again, jsonb_array_elements(answer -> 'deliveries') x),
		'whose id the answer names');
select is((select count(*)::int from autopost.events where action = 'dedup_suppressed'), 4,
	'and the events are those of a repeat');
select is(autopost.why('w', d.delivery_id) -> 'now' ->> 'sentence', 'not sent: the channel had this content already')
	from autopost.deliveries d where d.status = 'deduped' and d.channel_id = 'a';
select is(autopost.plan('w', '{"text": "x"}', autopost.now_ts()) -> 'channels' -> 0 ->> 'verdict', 'deduped',
	'a plan says the same');
select is((select count(*)::int from autopost.deliveries), 4, 'and leaves nothing');

-- Only the first was sent, and its window runs from that.
select is(test.claimed(), '{a,b}'::text[], 'the first of each is claimed');
select autopost.start_call('w', delivery_id, claim_token) from autopost.deliveries where status = 'sending';
select autopost.mark_sent('w', delivery_id, claim_token, 'm' || channel_id, autopost.now_ts(), '{}')
	from autopost.deliveries where status = 'sending';
select test.tick('167 hours');
select is(test.say('x') ->> 'deduped', '2');
select is((select count(*)::int from autopost.deliveries where status = 'deduped'), 4);
select test.tick('1 hour');
select is(test.say('x') ->> 'enqueued', '2', 'a row of the audit puts no window off');

-- A post that one channel had and another one not; and one of a fan-out in ranges.
select test.tick('1 minute');
select test.post('{"text": "y", "routing": {"include_channels": ["a"]}}');
select test.tick('1 second');
select is(test.post('{"text": "y", "remove_at": "2026-06-09T00:00:00Z"}') ->> 'enqueued', '1');
select is((select string_agg(d.channel_id || ' ' || d.status, ', ' order by d.delivery_id) from autopost.deliveries d
	join autopost.messages m using (message_id) where m.payload ->> 'text' = 'y'), 'a queued, a deduped, b queued');
select is((select count(*)::int from autopost.post_acts), 1, 'what is not sent is not removed');
select test.set('fanout_chunk_channels', '1');
select is(test.say('x') ->> 'fanout', 'running');
select is(autopost.run_fanout('w', 10) ->> 'deduped', '1', 'in ranges');
select is((select count(*)::int from autopost.deliveries d where d.enqueue_batch_id is not null), 1,
	'of which each keeps its own');

select is((select array_agg(v::text) from autopost.verify('w') v where v.violations > 0), null, 'and all holds');
select is((select array_agg(q.status order by q.status) from autopost.queue_snapshot('w') q), '{queued}'::text[],
	'none of them waits');
select throws_like($$update autopost.deliveries set status = 'dead'
	where status = 'deduped'$$, '%must not change from deduped to dead', 'nor will it ever');

select * from finish();
rollback;
