begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

select test.channel('a', p_max_parallel => 2);
select test.channel('b');
select test.say('post ' || n) from generate_series(1, 3) n;

select is((select array_agg(channel_id order by channel_id) from test.claim()), '{a,a,b}',
	'as many in flight as the channel may have');
select is(test.claimed(), '{}', 'a full channel gives nothing');
select is((test.gate('a')).ready_at, 'infinity', 'and is not visited until something ends');
select autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) from autopost.deliveries
where channel_id = 'a' and status = 'sending' order by delivery_id limit 1;
select is((test.gate('a')).inflight, 1, 'a commit frees its place');
select is(test.claimed(), '{a}', 'which the next one takes');
select is((test.gate('a')).inflight, 2);
update autopost.channels set max_parallel = 1 where channel_id = 'a';
select autopost.commit_outcome('w', delivery_id, claim_token, test.sent('2')) from autopost.deliveries
where channel_id = 'a' and status = 'sending' order by delivery_id limit 1;
select test.say('post 4');
select is(test.claimed(), '{}', 'a lowered limit counts what is in flight already');
update autopost.channels set max_parallel = 3 where channel_id = 'b';
select is((select count(*)::int from test.claim() where channel_id = 'b'), 2, 'a raised limit acts at once');
select is((select max(n)::int from (select count(*) as n from autopost.deliveries where status = 'sending'
	group by channel_id) x), 3);

select * from finish();
rollback;
