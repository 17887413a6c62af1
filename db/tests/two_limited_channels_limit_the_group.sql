begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel(c, p_rate_group => g)
	from (values ('a', 'bot'), ('b', 'bot'), ('c', 'bot'), ('d', 'other')) x (c, g);
select test.say('x');
select test.claimed();
create function test.limited(p_channel text) returns void
language sql
as $$
select test.start(p_channel);
select test.commit(p_channel, test.failure('TRANSIENT', 'channel', '429', '{"retry_after_ms": 60000}'))
$$;

select test.limited('a');
select ok(not exists (select 1 from autopost.platform_limits where cooldown_until is not null),
	'one limited channel is its own affair');
select test.limited('d');
select ok(not exists (select 1 from autopost.platform_limits where cooldown_until is not null),
	'a channel of another group says nothing about this one');
select test.tick('9.9 seconds');
select test.limited('b');
select ok((select cooldown_until from autopost.platform_limits
	where rate_group = 'bot') >= autopost.now_ts() + interval '60 seconds',
	'the second within ten seconds makes it the group''s');
select is((select e.meta ->> 'scope' from autopost.events e where e.action = 'cooldown' and e.channel_id = 'b'),
	'platform');
select is(test.start('c') ->> 'reason', 'rate', 'what was claimed already does not start either');

-- Ten seconds apart they are two single cases.
select test.tick('1 hour');
update autopost.platform_limits set cooldown_until = null;
select test.claimed();
select test.limited('a');
select test.tick('10 seconds');
select test.limited('b');
select is((select cooldown_until from autopost.platform_limits where rate_group = 'bot'), null,
	'not when the first is ten seconds old');
-- The same channel twice is one channel.
select test.tick('1 hour');
select test.claimed();
select test.limited('c');
select test.tick('1 second');
update autopost.channels set cooldown_until = null;
update autopost.deliveries set next_retry_at = autopost.now_ts() where channel_id = 'c';
update autopost.channel_gates set ready_at = autopost.now_ts() where channel_id = 'c';
select is((select count(*)::int from test.claim() where channel_id = 'c'), 1);
select test.limited('c');
select is((select cooldown_until from autopost.platform_limits where rate_group = 'bot'), null,
	'nor the same channel twice');

select * from finish();
rollback;
