begin;
\ir fake_clock.sql
\ir world.sql
select plan(14);

select test.channel('a', p_rate_rps => 4, p_max_parallel => 100);
select test.posts('post', 12);

create temp table c on commit drop as select * from test.claim();
select is((select array_agg(send_at - autopost.now_ts() order by send_at) from c),
	array['0', '0.25', '0.5', '0.75']::interval[], 'slots stand 1/rate apart, at most a second ahead');
select is((select array_agg(rendered_text order by send_at) from c), '{post 1,post 2,post 3,post 4}',
	'in the order of the posts');
select is((select count(*)::int from autopost.deliveries where status = 'queued'), 8,
	'later turns stay queued: they are not claimed early');
select is((test.channel_row('a')).next_allowed_at, autopost.now_ts() + interval '1 second',
	'the channel moves by what was given');
select is(test.claimed(), '{}', 'nothing before there is room within the second');
select is((test.gate('a')).ready_at, autopost.now_ts(), 'the gate says when that is');
select test.tick('250 milliseconds');
select is((select array_agg(send_at - autopost.now_ts()) from test.claim()), array['0.75'::interval],
	'a quarter second later there is one more slot');
select test.tick('10 seconds');
create temp table late on commit drop as select * from test.claim();
select is((select array_agg(send_at - autopost.now_ts() order by send_at) from late),
	array['0', '0.25', '0.5', '0.75']::interval[], 'slots that were missed are not caught up');

select test.channel('free', p_max_parallel => 100, p_rate_group => 'other');
select test.channel('zero', p_rate_rps => 0, p_max_parallel => 100, p_rate_group => 'other');
select test.posts('more', 6);
create temp table f on commit drop as select * from test.claim() where channel_id in ('free', 'zero');
select is((select count(*)::int from f), 12, 'no rate and rate 0 mean no limit');
select is((select count(send_at)::int from f), 0);
select is((test.channel_row('zero')).next_allowed_at, null, 'and leave the channel''s slot untouched');

select test.channel('slow', p_rate_rps => 0.1, p_max_parallel => 5, p_rate_group => 'slow');
select test.post(jsonb_build_object('text', 'slow ' || n, 'routing', '{"include_channels": ["slow"]}'::jsonb))
	from generate_series(1, 2) n;
select is(test.claimed(), '{slow}', 'below one a second: one');
select test.tick('8.9 seconds');
select is((select count(*)::int from test.claim() where channel_id = 'slow'), 0,
	'then none until its slot is a second away');
select test.tick('0.2 seconds');
select is((select (send_at - autopost.now_ts())::text from test.claim() where channel_id = 'slow'), '00:00:00.9',
	'and then with that slot');

select * from finish();
rollback;
