begin;
\ir fake_clock.sql
\ir world.sql
select plan(33);

select test.channel(c) from unnest('{a,b,c,d,e}'::text[]) c;
select test.say('x');
insert into autopost.platform_limits (workspace_id, platform, rate_group) values ('w', 'telegram', 'other');

-- Without observers the clock is trusted.
select ok(autopost.clock_agrees(autopost.now_ts()), 'without observers the clock is trusted');
select is(autopost.observe_clock('one'), '{"jumped_ms": 0}', 'a first observation has nothing to compare');
select test.tick('10 seconds');
select is(autopost.observe_clock('one', 10000), '{"jumped_ms": 0}');
select test.tick('15 seconds');
select is(autopost.observe_clock('one', 10000), '{"jumped_ms": 0}', 'a slow answer is not a jump');
select is(autopost.observe_clock('two'), '{"jumped_ms": 0}');
select ok((select trusted_from = seen_at from autopost.clock_observers where observer = 'two'),
	'who agrees with the others is believed at once');

-- A day forward, with a live call, a cooldown, a retry and a channel that spaces its posts.
select autopost.touch_run('daemon');
select test.claimed(1, 'daemon');
create temporary table before as
	select autopost.now_ts() as at, (select sending_lease_until from autopost.deliveries
		where status = 'sending') as lease;
update autopost.channels set cooldown_until = autopost.now_ts() + interval '1 hour',
	next_allowed_at = autopost.now_ts() + interval '2 minutes' where channel_id = 'b';
update autopost.channels set paused_until = 'infinity' where channel_id = 'c';
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '10 minutes';
insert into autopost.moderation_chats (workspace_id, chat_id, auth_ref, target_id, next_at)
values ('w', 'mods', 'bot', '-1001', autopost.now_ts() + interval '5 minutes');
select test.tick('1 day');
select is(autopost.recover_sending_leases('w') - 'dead' - 'unknown', '{"recovered": 0, "waiting": "clock"}',
	'nobody has found this clock right: no lease ends by it');
select is(autopost.observe_clock('one', 1000), '{"jumped_ms": 86399000}', 'a day in a second is a jump');
select is(autopost.observe_clock('two', 1000), '{"jumped_ms": 0}', 'which is reported once');
select is(autopost.recover_sending_leases('w') ->> 'waiting', 'clock', 'the workspace follows first');
select is((select count(*) from autopost.clock_debts), 0::bigint);
select is((select sending_lease_until - autopost.now_ts() from autopost.deliveries where status = 'sending'),
	(select lease - at - interval '1 second' from before), 'a lease lasts as long as it was to');
select is((select cooldown_until - autopost.now_ts() from autopost.channels where channel_id = 'b'),
	interval '59 minutes 59 seconds', 'so does what a platform asked for');
select is((select next_allowed_at - autopost.now_ts() from autopost.channels where channel_id = 'b'),
	interval '1 minute 59 seconds', 'and the distance of two posts');
select is((select max(cooldown_until) - autopost.now_ts() from autopost.platform_limits),
	interval '9 minutes 59 seconds');
select is((select next_at - autopost.now_ts() from autopost.moderation_chats), interval '4 minutes 59 seconds',
	'a chat of moderators too');
select is((select paused_until from autopost.channels where channel_id = 'c'), 'infinity',
	'what has no end keeps none');
select is((select seen_at - autopost.now_ts() from autopost.dispatch_runs), interval '-1 second',
	'a heartbeat is as old as it was');
select is(autopost.recover_sending_leases('w'), '{"dead": 0, "unknown": 0, "recovered": 0}',
	'and a live call is left alone');

-- A day back: what is due is due, and nothing stands still for a day.
select test.start('a') ->> 'applied';
select test.commit('a', '{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "tg_slow", "known": true, "retry_after_ms": 300000}}') ->> 'status';
create temporary table later as select next_retry_at - autopost.now_ts() as wait from autopost.deliveries
	where status = 'retry';
select test.channel('f');
select test.say('y');
select test.tick('-1 day');
select ok((test.gate('f')).ready_at > autopost.now_ts() + interval '23 hours', 'a gate is far ahead');
select is(autopost.observe_clock('two', 1000), '{"jumped_ms": -86401000}');
select is(autopost.observe_clock('one', 1000), '{"jumped_ms": 0}');
select is(autopost.recover_claimed_leases('w') ->> 'waiting', 'clock');
select is((select next_retry_at - autopost.now_ts() from autopost.deliveries
	where status = 'retry'), (select wait - interval '1 second' from later));
select ok((select bool_and(due_at <= autopost.now_ts()) from autopost.deliveries where status = 'queued'),
	'what was due is due');
select ok((test.gate('f')).ready_at <= autopost.now_ts(), 'and its gate is open');
select is((select cooldown_until - autopost.now_ts() from autopost.channels where channel_id = 'b'),
	interval '59 minutes 58 seconds');

-- Its call begins by the new time and is known to have begun.
update autopost.channel_gates set ready_at = 'infinity' where channel_id <> 'd';
select is(test.claimed(1, 'daemon'), '{d}');
select test.tick('-1 hour');
select is((select autopost.start_call('w', d.delivery_id, d.claim_token) ->> 'applied' from autopost.deliveries d
	where d.status = 'sending'), 'true', 'a claim from the future may begin');
select ok((select autopost.call_started_at(d) is not null from autopost.deliveries d where status = 'sending'),
	'and is known to have begun');

-- Daemons that are gone bear witness for nobody; a driver without a clock is believed after a while.
select test.tick('2 hours');
select is(autopost.recover_sending_leases('w') ->> 'waiting', 'clock', 'all observers are gone');
select test.tick('44 seconds');
select is(autopost.recover_sending_leases('w') ->> 'waiting', 'clock');
select test.tick('1 second');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '1',
	'who has asked for longer than a run may be silent is believed');

select * from finish();
rollback;
