begin;
\ir fake_clock.sql
\ir world.sql
select plan(39);

create function test.delay_ms(p_platform text, p_code text, p_attempt int, p_luck numeric, p_after numeric default null)
	returns numeric
language sql
as $$
select extract(epoch from autopost.retry_delay(autopost.retry_policy('w', p_platform, p_code), p_attempt, p_after,
	p_luck)) * 1000
$$;

-- 2 s, doubled, at most 10 minutes, a fifth to either side.
select is(round(test.delay_ms('telegram', 'http_500', a, 0.5)), e::numeric, 'after attempt ' || a)
from (values (1, 2000), (2, 4000), (3, 8000), (4, 16000), (5, 32000), (9, 512000), (10, 600000), (1000, 600000)) x (a,
	e);
select is(round(test.delay_ms('telegram', 'http_500', 3, 0)), 6400::numeric, 'the least luck');
select is(round(test.delay_ms('telegram', 'http_500', 3, 1)), 9600::numeric, 'the most');
select is(round(test.delay_ms('telegram', 'http_500', 0, 0.5)), 2000::numeric, 'no attempt yet counts as one');

-- A ladder ends on its last rung.
select is(round(test.delay_ms('max', 'attachment.not.ready', a, 0.5)), e::numeric, 'rung ' || a)
from (values (1, 1000), (2, 2000), (5, 15000), (6, 30000), (7, 30000), (100, 30000)) x (a, e);
select is(round(test.delay_ms('max', 'media_expired', a, 0.5)), e::numeric, 'media of MAX are tried for half a day, rung ' || a)
from (values (1, 600000), (12, 3600000)) x (a, e);

-- X: 1 and 5 minutes, half an hour, 2 and 6 hours (RTY-09). Failures of our own daemon are not those of X.
select is(round(test.delay_ms('x', 'x_5xx', a, 0.5)), e::numeric, 'X, rung ' || a)
from (values (1, 60000), (2, 300000), (3, 1800000), (4, 7200000), (5, 21600000)) x (a, e);
select is((autopost.retry_policy('w', 'x', 'not_started')).costs_attempt, false);

-- The most specific policy.
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms)
	values ('max', '*', 'exponential', 100, 1000), ('*', 'teapot', 'exponential', 7, 7);
select is((autopost.retry_policy('w', 'max', 'attachment.not.ready')).kind, 'ladder', 'platform and code');
select is((autopost.retry_policy('w', 'max', 'teapot')).base_ms, 100::bigint, 'then the platform');
select is((autopost.retry_policy('w', 'telegram', 'teapot')).base_ms, 7::bigint, 'then the code');
select is((autopost.retry_policy('w', 'telegram', 'other')).base_ms, 2000::bigint, 'then the rest');

-- Through the commit: five calls, then dead; attempt moves by the claim alone.
select test.channel('a');
select test.say('x');
create temp table turns (attempt int, delay interval) on commit drop;
do $$
declare
	v_answer jsonb;
begin
	for n in 1..4 loop
		v_answer := test.round('a', test.failure('TRANSIENT', 'delivery', 'http_500'));
		insert into turns
			values ((v_answer ->> 'attempt')::int, (v_answer ->> 'next_retry_at')::timestamptz - autopost.now_ts());
		perform test.set_clock((v_answer ->> 'next_retry_at')::timestamptz);
	end loop;
end
$$;
select ok((select bool_and(delay between interval '1.6 seconds' * 2 ^ (attempt - 1)
	and interval '2.4 seconds' * 2 ^ (attempt - 1)) from turns),
	'each delay within a fifth of its double: ' || (select string_agg(delay::text, ', ' order by attempt) from turns));
select is((select array_agg(attempt order by attempt) from turns), '{1,2,3,4}');
select is(test.round('a', test.failure('TRANSIENT', 'delivery', 'http_500')) ->> 'status', 'dead',
	'the fifth failure is the end');
select is((test.row('a')).attempt, 5);
select is(test.count_events('dead_letter', 'a'), 1);
select is((test.row('a')).finished_at, autopost.now_ts());
select test.tick('1 year');
select is(test.claimed(), '{}', 'dead stays dead');

-- A failure that says nothing about the post costs no attempt, a number of times; then it does.
select test.channel('m', p_platform => 'max');
select test.post('{"text": "y", "routing": {"include_channels": ["m"]}}');
create temp table last_answer on commit drop as select null::jsonb as answer;
do $$
begin
	for n in 1..17 loop
		perform test.tick('1 minute');
		update last_answer set answer = test.round('m', test.failure('TRANSIENT', 'delivery', 'attachment.not.ready'));
		if n = 16 then
			perform set_config('test.last_but_one', (select answer ->> 'status' from last_answer), true);
		end if;
	end loop;
end
$$;
select is(current_setting('test.last_but_one'), 'retry',
	'an attachment that is not ready has twelve in addition to the five');
select is((select answer ->> 'status' from last_answer), 'dead');
select is((test.row('m')).granted_attempts, 12);

select * from finish();
rollback;
