begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

select test.channel('a', p_max_parallel => 100);
select test.channel('b', p_rate_rps => 1, p_max_parallel => 100);
select test.channel('c', p_max_parallel => 100, p_rate_group => 'another');
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', 2);
select test.say('post ' || n) from generate_series(1, 4) n;

create temp table c on commit drop as select * from test.claim();
select is((select array_agg(send_at - autopost.now_ts() order by send_at) from c where rate_group = 'bot'),
	array['0', '0.5']::interval[], 'the channels of a group share its slots');
select is((select array_agg(channel_id order by channel_id) from c where rate_group = 'bot'), '{a,b}', 'by turns');
select is((select count(*)::int from c where channel_id = 'c'), 4, 'another group knows nothing of it');
select is((select next_allowed_at from autopost.platform_limits), autopost.now_ts() + interval '1 second');
select test.tick('1 second');
create temp table d on commit drop as select * from test.claim();
select is((select count(*)::int from d), 2);
select ok((select bool_and(x.gap >= interval '0.5 seconds') from (
	select send_at - lag(send_at) over (order by send_at) as gap
		from (select send_at from c where rate_group = 'bot' union all select send_at from d) s) x
	where x.gap is not null), 'no two slots of the group are closer than its rate');
select ok((select bool_and(x.gap >= interval '1 second') from (
	select send_at - lag(send_at) over (order by send_at) as gap from (select * from c union all select * from d) s
		where channel_id = 'b') x
	where x.gap is not null), 'and none of the channel closer than the channel''s own');

update autopost.platform_limits set rate_rps = 0;
select test.tick('2 seconds');
select ok((select bool_and(send_at is null) from test.claim() where channel_id = 'a'),
	'a group without a rate does not limit');
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '1 minute';
select test.say('post 5');
select is((select array_agg(channel_id) from test.claim()), '{c}', 'but its cooldown still stops it');

select * from finish();
rollback;
