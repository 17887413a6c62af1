begin;
\ir fake_clock.sql
\ir world.sql
select plan(14);

create function test.wait_ms(p_luck numeric) returns numeric
language sql
as $$
select extract(epoch from autopost.retry_delay(autopost.retry_policy('w', 'telegram', '429'), 1, 30000, p_luck)) * 1000
$$;
select is(test.wait_ms(0), 30000::numeric, 'never less than the platform said');
select is(round(test.wait_ms(1)), 36000::numeric, 'jitter is only added');
select is(extract(epoch from autopost.retry_delay(autopost.retry_policy('w', 'max', 'attachment.not.ready'), 1, 30000, 0)),
	30::numeric, 'also over a ladder');

select test.channel('a');
select test.channel('b');
select test.channel('c', p_rate_group => 'other');
select test.say('x');

-- scope channel: this channel waits, the others go on.
select test.claimed();
select test.start('a');
create temp table r on commit drop as select test.commit('a',
	test.failure('TRANSIENT', 'channel', '429', '{"retry_after_ms": 30000}')) as answer;
select ok((select (answer ->> 'next_retry_at')::timestamptz from r) between autopost.now_ts() + interval '30 seconds'
	and autopost.now_ts() + interval '36 seconds');
select is((select answer ->> 'attempt' from r), '1', 'attempt is left to the claim');
select ok((test.channel_row('a')).cooldown_until >= autopost.now_ts() + interval '30 seconds',
	'the whole channel waits');
select ok((test.channel_row('b')).cooldown_until is null);
select is(test.count_events('cooldown', 'a'), 1);
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where status = 'sending'));
select test.say('y');
select test.tick('29.9 seconds');
select ok(not 'a' = any (test.claimed()), 'nothing of it starts inside the wait, the next post neither');
select test.tick('6.2 seconds');
select ok('a' = any (test.claimed()), 'after it all goes on');

-- schedule_retry: what the caller passes only lengthens.
create temp table own on commit drop as
select autopost.schedule_retry('w', d.delivery_id, d.claim_token,
	test.failure('TRANSIENT', 'delivery', 'x', '{"retry_after_ms": 60000}') -> 'error',
	autopost.now_ts() + interval '1 second') as answer
from autopost.deliveries d where d.channel_id = 'b' and d.status = 'sending';
select ok((select (answer ->> 'next_retry_at')::timestamptz from own) >= autopost.now_ts() + interval '60 seconds',
	'a nearer time does not shorten it');
create temp table far on commit drop as
select autopost.schedule_retry('w', d.delivery_id, d.claim_token, test.failure('TRANSIENT', 'delivery', 'x') -> 'error',
	autopost.now_ts() + interval '2 hours') as answer
from autopost.deliveries d where d.channel_id = 'c' and d.status = 'sending';
select is((select (answer ->> 'next_retry_at')::timestamptz from far), autopost.now_ts() + interval '2 hours',
	'a later one is kept');

-- scope platform cools the group down, with or without a rate.
select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('TRANSIENT', 'platform', '429', '{"retry_after_ms": 20000}'))
from autopost.deliveries d where d.channel_id = 'a' and d.status = 'sending';
select ok((select cooldown_until from autopost.platform_limits
	where rate_group = 'bot') >= autopost.now_ts() + interval '20 seconds',
	'the group''s row is made where it is missing');
select test.say('z');
select is(test.claimed(), '{c}', 'only the other group goes on');

select * from finish();
rollback;
