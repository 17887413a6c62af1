begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);

select test.channel('a');
select test.channel('b');
update autopost.channels set dedup_ttl_hours = 24;

select is(test.say('x') ->> 'enqueued', '2', 'the same content goes to two channels');
select is(test.say('x') ->> 'deduped', '2', 'but not again while it is in flight');
select is((test.say('x') ->> 'status'), 'duplicate');
select test.tick('20 hours');
select is(test.round('a', test.sent('1')) ->> 'status', 'sent', 'sent 20 hours after it was enqueued');
select test.tick('23 hours 59 minutes');
select is((select string_agg(x.value ->> 'channel_id' || ' ' || (x.value ->> 'status'), ', '
	order by x.value ->> 'channel_id')
	from jsonb_array_elements(test.say('x') -> 'deliveries') x), 'a deduped, b deduped',
		'the window counts from the sending, not from the enqueue');
select is(test.count_events('dedup_suppressed', 'a'), 3, 'each suppression leaves an event');
select is((select count(*)::int from autopost.deliveries), 2, 'and no delivery');
select test.tick('1 minute');
select is((select string_agg(x.value ->> 'channel_id' || ' ' || (x.value ->> 'status'), ', '
	order by x.value ->> 'channel_id')
	from jsonb_array_elements(test.say('x') -> 'deliveries') x), 'a queued, b deduped',
		'after the window it may go again; what still waits keeps its place');

-- Only sent and live deliveries stand in the way.
select test.channel('c');
update autopost.channels set enabled = channel_id = 'c', dedup_ttl_hours = 24;
select test.say('y');
select is(test.round('c', test.failure('PERMANENT', 'delivery', 'http_400')) ->> 'status', 'failed_permanent');
select is(test.say('y') ->> 'enqueued', '1', 'a failed delivery does not suppress');
select test.claimed();
select is(test.say('y') ->> 'deduped', '1', 'one that is being sent does');
insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status)
select 'w', autopost.new_id(), m.message_id, 'c', m.hash_version, m.content_hash, 'deduped' from autopost.messages m;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('2')) from autopost.deliveries d
	where d.channel_id = 'c' and d.status = 'sending';
select test.tick('24 hours');
select is(test.say('y') ->> 'enqueued', '1', 'an audit row of a suppression never lengthens the window');

update autopost.channels set dedup_ttl_hours = 0;
select test.claimed();
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('3')) from autopost.deliveries d
	where d.channel_id = 'c' and d.status = 'sending';
select is(test.say('y') ->> 'enqueued', '1', 'a window of 0 hours lets it pass at once');
update autopost.channels set dedup_ttl_hours = null;
select test.claimed();
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('4')) from autopost.deliveries d
	where d.channel_id = 'c' and d.status = 'sending';
select test.tick('167 hours');
select is(test.say('y') ->> 'deduped', '1', 'no window of its own means 168 hours');
select test.tick('1 hour');
select is(test.say('y') ->> 'enqueued', '1');

select * from finish();
rollback;
