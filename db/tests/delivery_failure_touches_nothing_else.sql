begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

select test.channel('a', p_max_parallel => 3, p_rate_rps => 10);
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
	values ('w', 'telegram', 'bot', 100);
update autopost.channels set error_streak = 2;
select test.say('post ' || n) from generate_series(1, 3) n;
select test.claimed();
create temp table before on commit drop as select to_jsonb(c) as c, (select to_jsonb(l)
	from autopost.platform_limits l) as l from test.channel_row('a') c;

create function test.fail_next(p_outcome jsonb) returns jsonb
language sql
as $$
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, p_outcome) from (
	select * from autopost.deliveries where status = 'sending' order by delivery_id limit 1) d
$$;
select is(test.fail_next(test.failure('PERMANENT', 'delivery', 'http_400')) ->> 'status', 'failed_permanent');
select is((select to_jsonb(c) from test.channel_row('a') c), (select c from before), 'no streak, no pause');
select is((select to_jsonb(l) from autopost.platform_limits l), (select l from before), 'no cooldown');
select is(test.fail_next(test.failure('TRANSIENT', 'delivery', 'http_500', '{"retry_after_ms": 5000}')) ->> 'status',
	'retry');
select is((select to_jsonb(c) from test.channel_row('a') c), (select c from before), 'nor by a wait of the delivery');
select is((test.channel_row('a')).error_streak, 2, 'transient errors leave the streak');

-- scope platform: the group rests, no channel is to blame.
select is(test.fail_next(test.failure('PERMANENT', 'platform', 'http_503')) ->> 'status', 'failed_permanent');
select is((select to_jsonb(c) from test.channel_row('a') c), (select c from before), 'no channel is to blame');
select is((select cooldown_until from autopost.platform_limits), autopost.now_ts() + interval '60 seconds',
	'the group rests');
select is((select next_allowed_at from autopost.platform_limits), (select (l ->> 'next_allowed_at')::timestamptz
	from before), 'its slots stay as they are');
select is(test.count_events('cooldown'), 1);
-- A scope nobody knows is the delivery's.
select test.tick('10 minutes');
select test.claimed();
select is(test.fail_next(test.failure('PERMANENT', 'galaxy', 'odd')) ->> 'status', 'failed_permanent');
select is((test.channel_row('a')).error_streak, 2, 'an unknown scope is the delivery''s');

select * from finish();
rollback;
