-- Late calls of a batch take the next slots together, in the order of their starts.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);

select test.channel('a', p_rate_rps => 4, p_max_parallel => 100);
select test.posts('post', 4);
create temp table c on commit drop as select * from test.claim();
create function test.start_all(p_posts text[]) returns table (post text, answer jsonb)
language sql
as $$
select u.post, b.answers -> (u.n - 1)::int
from unnest(p_posts) with ordinality u (post, n)
cross join (
	select autopost.start_call_batch('w',
		jsonb_agg(jsonb_build_object('delivery_id', c.delivery_id, 'claim_token', c.claim_token)
		order by array_position(p_posts, c.rendered_text))) as answers
	from c where c.rendered_text = any (p_posts)) b
$$;
create function test.slots(p_posts text[]) returns interval[]
language sql
as $$
select array_agg((s.answer ->> 'send_at')::timestamptz - autopost.now_ts() order by s.post)
	from test.start_all(p_posts) s where (s.answer ->> 'applied')::boolean
$$;

select is(test.slots('{post 3,post 4}'), '{0.5,0.75}', 'two begin');
select test.tick('2 seconds');
select is(test.slots('{post 1,post 2,post 3,post 4}'), '{0.5,0.75,0,0.25}',
	'they were late, and so are the others: each has a slot of its own');
select is((select array_agg(e.n) from (select count(*)::int as n from autopost.events e where e.action = 'send_attempt'
	group by e.delivery_id) e), '{1,1,1,1}', 'and each call is on record once');
update autopost.channels set rate_rps = 0.5;
select test.tick('2 seconds');
select is(test.slots('{post 1,post 2,post 3,post 4}'), '{4,6,0,2}', 'who has begun waits however far the slot is');
select is((test.channel_row('a')).next_allowed_at, autopost.now_ts() + interval '8 seconds', 'which moves the channel');

-- Slower than a slot is long: the own slot, if it is the last one given, is taken back, or nobody
-- like that would ever come to a call.
create function test.late(p_channel text) returns jsonb
language sql
as $$
select test.tick('150 milliseconds');
select test.start(p_channel)
$$;
update autopost.channels set enabled = false where channel_id = 'a';
select test.channel('slow', p_rate_rps => 0.2, p_max_parallel => 10, p_rate_group => 'slow');
select test.say('alone');
select test.tick('1 minute');
select is(test.claimed(), '{slow}');
select is(test.late('slow') ->> 'applied', 'true', 'late for the last slot: at once');
select is((test.channel_row('slow')).next_allowed_at, autopost.now_ts() + interval '5 seconds',
	'from when the next one is reckoned');
select test.commit('slow', test.sent('1'));
update autopost.channels set rate_rps = null, next_allowed_at = null where channel_id = 'slow';
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
	values ('w', 'telegram', 'slow', 0.2);
select test.say('by the group');
select test.tick('1 minute');
select is(test.claimed(), '{slow}');
select is(test.late('slow') ->> 'applied', 'true', 'the same by the group''s slot');
select is((select next_allowed_at from autopost.platform_limits where rate_group = 'slow'),
	autopost.now_ts() + interval '5 seconds');
select test.commit('slow', test.sent('2'));
-- Behind it there is another's slot: that one is nearer to it than the rate allows.
update autopost.platform_limits set rate_rps = 2 where rate_group = 'slow';
select test.posts('of two', 2);
select test.tick('1 minute');
select is(cardinality(test.claimed()), 2);
select test.tick('250 milliseconds');
select is((select (autopost.start_call('w', d.delivery_id,
	d.claim_token) ->> 'send_at')::timestamptz - autopost.now_ts() from autopost.deliveries d
	where d.channel_id = 'slow' and d.status = 'sending' order by d.send_at
		limit 1), '0.75', 'the first of two takes the slot after the second''s');

-- The clock is put back between claim and start: nobody waits for a slot of another day.
update autopost.channels set enabled = false where channel_id = 'slow';
select test.channel('back', p_rate_rps => 2, p_max_parallel => 10, p_rate_group => 'back');
select test.say('a day ahead');
select test.tick('1 minute');
select is(test.claimed(), '{back}');
select test.tick('-1 day');
select is((select (autopost.start_call('w', d.delivery_id, d.claim_token) ->> 'send_at')::timestamptz
	from autopost.deliveries d where d.channel_id = 'back'), autopost.now_ts(), 'it goes now');

select * from finish();
rollback;
