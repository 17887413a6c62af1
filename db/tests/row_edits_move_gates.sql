-- A plain UPDATE or INSERT of an operator takes effect with the next claim.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(25);

select test.channel('a', p_max_parallel => 1);
select is((test.gate('a')).ready_at, 'infinity', 'a channel is born with its gate');
select test.posts('post', 20);

update autopost.channels set enabled = false;
select is(test.claimed(), '{}', 'disabled');
select is((test.gate('a')).ready_at, 'infinity', 'and not visited any more');
update autopost.channels set enabled = true;
select is(test.claimed(), '{a}', 'enabled: at once');
update autopost.channels set max_parallel = 3;
select is(test.claimed(), '{a,a}', 'more in parallel: at once');
update autopost.channels set max_parallel = 100, paused_until = autopost.now_ts() + interval '1 hour';
select is(test.claimed(), '{}', 'paused');
select is((test.gate('a')).ready_at, autopost.now_ts() + interval '1 hour', 'until then');
update autopost.channels set paused_until = null;
select is(cardinality(test.claimed(2)), 2, 'resumed: at once');
update autopost.channels set rate_rps = 0.01;
select is(test.claimed(), '{a}', 'a limit begins with a slot');
select is(test.claimed(), '{}');
select ok((test.gate('a')).ready_at > autopost.now_ts() + interval '90 seconds');
update autopost.channels set rate_rps = null;
select is(cardinality(test.claimed(2)), 2, 'a limit that is lifted: at once');
update autopost.channels set rate_group = 'elsewhere';
select is((test.gate('a')).rate_group, 'elsewhere', 'the gate moves with its group');
insert into autopost.platform_limits (workspace_id, platform, rate_group, cooldown_until)
	values ('w', 'telegram', 'elsewhere', autopost.now_ts() + interval '1 hour');
select is(test.claimed(), '{}', 'under the new group''s cooldown');
update autopost.platform_limits set cooldown_until = null;
select is(cardinality(test.claimed(2)), 2, 'which may be lifted by hand');
update autopost.workspaces set status = 'paused';
select is(test.claimed(), '{}');
update autopost.workspaces set status = 'active';
select is(cardinality(test.claimed(2)), 2);

-- A change of what does not matter to a gate leaves it alone.
create temp table before on commit drop as select to_jsonb(test.gate('a')) as g;
update autopost.channels set title = 'New', settings = '{"parse_mode": "HTML"}', error_streak = 1;
select is(to_jsonb(test.gate('a')), (select g from before));

-- Only enabling resets a channel.
update autopost.channels set enabled = false, error_streak = 3;
select is((test.channel_row('a')).error_streak, 3);
update autopost.channels set enabled = true;
select is((test.channel_row('a')).error_streak, 0, 'enabled by hand: without failures');
update autopost.channels set error_streak = 2;
update autopost.channels set enabled = true, paused_until = null;
select is((test.channel_row('a')).error_streak, 2, 'it was enabled already');

-- The net below: gates that somebody spoiled.
update autopost.channel_gates set ready_at = 'infinity', inflight = 0;
select is(test.claimed(), '{}', 'a gate that is shut wrongly');
select is(autopost.rearm_gates('w'), '{"rearmed": 1}', 'is found');
select is((test.gate('a')).inflight, (select count(*)::int from autopost.deliveries where status = 'sending'),
	'and counted again');
select is(autopost.rearm_gates('w'), '{"rearmed": 0}', 'in a sound system there is nothing to do');

select * from finish();
rollback;
