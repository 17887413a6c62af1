-- A channel keeps its queue outside its window. When the window opens, the queue is sent in order
-- and within the rate.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(42);

-- It is Monday noon; the window is 14:00 to 15:00 in UTC, on Mondays and Tuesdays.
create function test.window(p_channel_id text, p_rate_rps numeric default null, p_max_parallel int default 1)
	returns void
language sql
as $$
select test.channel(p_channel_id, p_rate_rps, p_max_parallel);
update autopost.channels set window_mode = 'windowed',
	posting_window = '{"mon": [["14:00", "15:00"]], "tue": [["14:00", "15:00"]]}' where channel_id = p_channel_id
$$;
create function test.settle(p_channel_id text) returns void
language sql
as $$
-- Begins and ends every call of the channel that was claimed.
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d
	where d.channel_id = p_channel_id and d.status = 'sending';
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) from autopost.deliveries d
	where d.channel_id = p_channel_id and d.status = 'sending'
$$;

select test.window('a', p_rate_rps => 1, p_max_parallel => 10);
select test.channel('free');
select test.posts('post', 3);
select is(test.claimed(), '{free}', 'a closed channel holds up nobody');
select is((test.gate('a')).ready_at, '2026-06-01 14:00+00', 'and is worth a visit when it opens');
select is(autopost.rearm_gates('w'), '{"rearmed": 0}', 'which the sweep finds right');
select is((select count(*)::int from autopost.verify('w') v where v.violations > 0), 0, 'and verify too');
update autopost.channel_gates set ready_at = 'infinity' where channel_id = 'a';
select is(autopost.rearm_gates('w'), '{"rearmed": 1}', 'a gate that was shut wrongly');
select is((test.gate('a')).ready_at, '2026-06-01 14:00+00', 'waits for the window as well');
select test.set_clock('2026-06-01 13:59:59.999+00');
select is((select count(*)::int from test.claim() where channel_id = 'a'), 0, 'not a moment early');
select test.set_clock('2026-06-01 14:00+00');
create temp table c on commit drop as select * from test.claim() where channel_id = 'a';
select is((select array_agg(rendered_text) from c), '{post 1}', 'the first at once; no more fit into a second');
select is((select send_at from c), '2026-06-01 14:00+00');
select test.settle('a');
select test.tick('1 second');
select is((select array_agg(rendered_text) from test.claim() where channel_id = 'a'), '{post 2}',
	'then the next, at its rate');
select test.settle('a');

-- A slot that lies past the end.
select test.set_clock('2026-06-01 14:59:59.5+00');
update autopost.channels set next_allowed_at = '2026-06-01 15:00:00.2+00' where channel_id = 'a';
select is((select count(*)::int from test.claim() where channel_id = 'a'), 0, 'open now, but its slot is not inside');
select is((test.gate('a')).ready_at, '2026-06-02 14:00+00', 'so tomorrow, without looking again and again');
select test.set_clock('2026-06-02 14:59:59.5+00');
update autopost.channels set next_allowed_at = '2026-06-02 14:59:59.9+00' where channel_id = 'a';
select is((select send_at from test.claim() where channel_id = 'a'), '2026-06-02 14:59:59.9+00',
	'a slot inside is taken');
select is(test.start('a') ->> 'applied', 'true', 'and kept');
select test.settle('a');

-- The same by the group's slot.
select test.set_clock('2026-06-08 14:59:59.5+00');
update autopost.channels set enabled = false where channel_id <> 'a';
update autopost.channels set rate_rps = null, next_allowed_at = null where channel_id = 'a';
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, next_allowed_at)
	values ('w', 'telegram', 'bot', 1, '2026-06-08 15:00:00.2+00');
select test.say('by the group');
select is(test.claimed(), '{}', 'nor is the slot of the group');
select is((test.gate('a')).ready_at, '2026-06-09 14:00+00');
delete from autopost.platform_limits;
update autopost.channels set enabled = false where channel_id = 'a';

-- Closed between claim and start.
select test.set_clock('2026-06-15 14:59:59+00');
select test.window('b', p_max_parallel => 10);
select test.say('late');
select test.tick('1 millisecond');
select is(test.claimed(), '{b}');
select test.set_clock('2026-06-15 15:00+00');
create temp table before on commit drop as select (test.row('b')).granted_attempts;
select is(test.start('b') - 'now', '{"applied": false, "reason": "window"}', 'it closed meanwhile');
select is((test.row('b')).status, 'retry', 'handed back already');
select is((test.row('b')).granted_attempts, (select granted_attempts + 1 from before), 'with its attempt');
select ok(not 'send_attempt' = any (test.actions('b')), 'and no call is on record');
select is(test.claimed(), '{}', 'the window holds it');
select is((test.gate('b')).ready_at, '2026-06-16 14:00+00');
select is((select ready_workspaces from autopost.ready_workspaces(10)), null, 'nobody is woken for it');
select is(test.next_wake(), 23 * 3600 * 1000::bigint, 'before then');

-- A row edit acts at once.
update autopost.channels set timezone = 'Europe/London' where channel_id = 'b';
select is(test.claimed(), '{}', 'in London it is 16:00');
select is((test.gate('b')).ready_at, '2026-06-16 13:00+00', 'and the window opens an hour sooner');
update autopost.channels set timezone = 'Atlantic/Azores' where channel_id = 'b';
select is(test.claimed(), '{}', 'on the Azores it is 15:00');
update autopost.channels set posting_window = '{"mon": [["15:00", "16:00"]]}' where channel_id = 'b';
select is(test.claimed(), '{b}', 'another window: at once');
select is(test.start('b') ->> 'applied', 'true');
select test.commit('b', test.failure('TRANSIENT', 'delivery', 'http_502'));
select is((test.row('b')).status, 'retry');
update autopost.channels set posting_window = '{}' where channel_id = 'b';
select test.tick('1 hour');
select is(test.claimed(), '{}', 'no window at all');
select is((test.gate('b')).ready_at, 'infinity', 'never');
update autopost.channels set window_mode = 'immediate' where channel_id = 'b';
select is(test.claimed(), '{b}', 'immediate: at once');
select test.settle('b');
update autopost.channels set window_mode = 'windowed', timezone = null,
	posting_window = '{"mon": [["14:00", "15:00"]], "tue": [["14:00", "15:00"]]}' where channel_id = 'b';

-- Scheduled times and windows: the later of both.
select test.set_clock('2026-06-22 12:00+00');
select test.post('{"text": "inside", "scheduled_for": "2026-06-22T14:30:00Z"}');
select test.set_clock('2026-06-22 14:29:59.999+00');
select is(test.claimed(), '{}', 'the window is open, the time has not come');
select test.tick('1 millisecond');
select is(test.claimed(), '{b}', 'a time inside the window is kept');
select test.settle('b');
select test.post('{"text": "outside", "scheduled_for": "2026-06-22T18:00:00Z"}');
select test.set_clock('2026-06-22 18:00+00');
select is(test.claimed(), '{}', 'a time outside waits');
select is((test.gate('b')).ready_at, '2026-06-23 14:00+00', 'for the next opening');
select test.set_clock('2026-06-23 14:00+00');
select is(test.claimed(), '{b}');
select is(test.start('b') ->> 'applied', 'true');

-- A delivery in flight is finished.
update autopost.channels set rate_rps = 1, next_allowed_at = '2026-06-23 15:00+00' where channel_id = 'b';
select test.set_clock('2026-06-23 14:59:59+00');
update autopost.deliveries set sending_lease_until = autopost.now_ts() + interval '5 minutes' where status = 'sending';
select is((autopost.record_series_progress('w', d.delivery_id, d.claim_token,
	'{"step": "text", "ids": ["5"]}') ->> 'send_at')::timestamptz,
	'2026-06-23 15:00+00', 'its next step may leave past the end') from test.row('b') d;
select is((select sum(v.violations)::int from autopost.verify('w') v where v.invariant = 'I16'), 0,
	'none of all this began outside');

select * from finish();
rollback;
