-- Failures unrelated to the post cost no attempt, by the retry policy of their code (e.g. an empty account).
begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

select test.channel('x', p_platform => 'x');
select test.channel('other', p_platform => 'x');
select test.say('A post for money');
create function test.poor(p_code text) returns text
language sql
as $$
select test.round('x', test.failure('TRANSIENT', 'platform', p_code, '{"retry_after_ms": 3600000}')) ->> 'status'
$$;
select is(array(select test.poor('x_no_credits') from generate_series(1, 1)), '{retry}');
select is((select l.cooldown_until >= autopost.now_ts() + interval '1 hour' from autopost.platform_limits l
	where l.platform = 'x'), true, 'the account rests');
select is(test.claimed(), '{}', 'and nothing else is tried meanwhile');
do $$
begin
	for n in 1 .. 10 loop
		perform test.tick('2 hours'), test.poor(case when n % 2 = 0 then 'x_no_credits' else 'x_usage_capped' end);
	end loop;
end
$$;
select is((test.row('x')).status, 'retry', 'twice its attempts, and not dead');
select is((select l.breaker_opened_at from autopost.platform_limits l where l.platform = 'x'), null,
	'the platform is up');
select test.tick('1 day');
select is(test.round('x', test.failure('TRANSIENT', 'delivery', 'x_conflict')) ->> 'status', 'retry',
	'all its own attempts are left');
select is((test.row('x')).attempt - (test.row('x')).granted_attempts, 1);

do $$
begin
	for n in 1 .. 10 loop
		perform test.tick('2 minutes'), test.round('other', test.failure('TRANSIENT', 'delivery',
			case when n % 2 = 0 then 'not_started' else 'not_called' end));
	end loop;
end
$$;
select is((test.row('other')).status, 'retry', 'a slow daemon does not use up the attempts of a post');
select is((test.row('other')).granted_attempts, 10);

select * from finish();
rollback;
