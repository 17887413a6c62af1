-- Those of a batch that are late for their slots take the next ones together, who has begun first.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(5);

select test.channel('a', p_rate_rps => 4, p_max_parallel => 100);
select test.posts('post', 4);
create temp table c on commit drop as select * from test.claim();
create function test.start_all(p_posts text[]) returns table (post text, answer jsonb)
language sql
as $$
select u.post, b.answers -> (u.n - 1)::int
from unnest(p_posts) with ordinality u (post, n)
cross join (
	select autopost.start_call_batch('w', jsonb_agg(jsonb_build_object('delivery_id', c.delivery_id, 'claim_token', c.claim_token) order by array_position(p_posts, c.rendered_text))) as answers
	from c where c.rendered_text = any (p_posts)) b
$$;
create function test.slots(p_posts text[]) returns interval[]
language sql
as $$
select array_agg((s.answer ->> 'send_at')::timestamptz - autopost.now_ts() order by s.post) from test.start_all(p_posts) s where (s.answer ->> 'applied')::boolean
$$;

select is(test.slots('{post 3,post 4}'), '{0.5,0.75}', 'two begin');
select test.tick('2 seconds');
select is(test.slots('{post 1,post 2,post 3,post 4}'), '{0.5,0.75,0,0.25}', 'they were late, and so are the others: each has a slot of its own');
select is((select array_agg(e.n) from (select count(*)::int as n from autopost.events e where e.action = 'send_attempt' group by e.delivery_id) e), '{1,1,1,1}', 'and each call is on record once');
update autopost.channels set rate_rps = 0.5;
select test.tick('2 seconds');
select is(test.slots('{post 1,post 2,post 3,post 4}'), '{4,6,0,2}', 'who has begun waits however far the slot is');
select is((test.channel_row('a')).next_allowed_at, autopost.now_ts() + interval '8 seconds', 'which moves the channel');

select * from finish();
rollback;
