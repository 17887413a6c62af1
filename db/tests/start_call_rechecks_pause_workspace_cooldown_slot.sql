-- start_call commits just before the first byte. Changes since the claim stop the call and release
-- the delivery.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(51);

select test.channel('a', p_max_parallel => 10);
insert into autopost.platform_limits (workspace_id, platform, rate_group) values ('w', 'telegram', 'bot');

select test.say('x');
select test.claimed();
create temp table s on commit drop as select test.start('a') as answer;
select is((select answer ->> 'applied' from s), 'true');
select is((select (answer ->> 'deadline')::timestamptz from s), autopost.now_ts() + interval '290 seconds',
	'the call must end before its lease does');
select is((select (answer ->> 'now')::timestamptz from s), autopost.now_ts());
select is(test.actions('a'), '{send_attempt}', 'that it begins is on record before it begins');
select is((select e.attempt from autopost.events e where e.action = 'send_attempt'), 1);
select is((select e.meta ->> 'idempotency_key' from autopost.events e
	where e.action = 'send_attempt'), (test.row('a')).delivery_id::text);
select test.tick('1 second');
select is(test.start('a') ->> 'applied', 'true', 'asked again with the same token: the same answer');
select is(test.actions('a'), '{send_attempt}', 'and no second attempt');
select test.commit('a', test.sent('1'));

create function test.stopped(p_what text, p_reason text) returns setof text
language plpgsql
as $$
-- A fresh claim was obstructed: the call does not begin, and the row returns to the queue with its
-- attempt granted again.
declare
	v_before autopost.deliveries := test.row('a');
begin
	return next is(test.start('a') - 'now', jsonb_build_object('applied', false, 'reason', p_reason),
		p_what || ' stops the call');
	return next is((test.row('a')).status, 'retry', p_what || ': handed back already');
	return next is((test.row('a')).granted_attempts, v_before.granted_attempts + 1,
		p_what || ': the attempt is granted again');
	return next is((test.row('a')).next_retry_at, autopost.now_ts(),
		p_what || ': due, since what is in the way may end sooner');
	return next is(test.actions('a'), array['released'], p_what || ': an event, and no attempt');
	return next is(autopost.start_call('w', v_before.delivery_id, v_before.claim_token) ->> 'reason', 'stale',
		p_what || ': the claim is over');
end
$$;
create function test.fresh(p_text text) returns text[]
language sql
as $$
select test.tick('1 hour');
select test.say(p_text);
select test.claimed()
$$;

select test.fresh('workspace');
update autopost.workspaces set status = 'paused';
select test.stopped('a paused workspace', 'workspace');
update autopost.workspaces set status = 'active';

select test.fresh('paused');
update autopost.channels set paused_until = autopost.now_ts() + interval '10 minutes';
select test.stopped('a pause', 'paused');
select is((test.claimed())[1], null, 'and the pause holds it');

select test.fresh('disabled');
update autopost.channels set enabled = false;
select test.stopped('a disabled channel', 'disabled');
update autopost.channels set enabled = true;

select test.fresh('cooldown');
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '5 minutes';
select test.stopped('a cooldown of the group', 'rate');
select is((test.claimed())[1], null, 'and the cooldown holds it');

-- The lease.
select test.fresh('lease');
select test.tick('300 seconds');
select is(test.start('a') ->> 'reason', 'stale', 'a lease that ran out');
select is((test.row('a')).status, 'sending', 'is for recovery to end');
select autopost.recover_sending_leases('w');

-- The slot.
select test.tick('1 day');
update autopost.channels set enabled = false where channel_id = 'a';
select test.channel('r', p_rate_rps => 2, p_max_parallel => 10, p_rate_group => 'slow');
select test.say('slot');
select test.claimed();
select test.tick('100 milliseconds');
select is((test.start('r') ->> 'send_at')::timestamptz, autopost.now_ts() - interval '100 milliseconds',
	'a tenth of a second late keeps its slot');
select test.commit('r', test.sent('1'));
select test.tick('1 hour');
select test.say('slot 2');
select test.claimed();
select test.tick('101 milliseconds');
create temp table late on commit drop as select test.start('r') as answer;
select is((select (answer ->> 'send_at')::timestamptz from late), autopost.now_ts(),
	'later, it goes now: no other slot was given since');
select is((test.row('r')).send_at, (select (answer ->> 'send_at')::timestamptz from late));
select is((test.channel_row('r')).next_allowed_at, autopost.now_ts() + interval '500 milliseconds',
	'which moves the channel');
select test.commit('r', test.sent('2'));
-- Late for the slot of a call that is on record: the next one, however far.
select test.tick('1 hour');
select test.say('slot 2b');
select test.claimed();
select is((test.start('r') ->> 'send_at')::timestamptz, autopost.now_ts());
select test.tick('150 milliseconds');
update autopost.channels set next_allowed_at = autopost.now_ts() + interval '3 seconds' where channel_id = 'r';
select is((test.start('r') ->> 'send_at')::timestamptz, autopost.now_ts() + interval '3 seconds',
	'asked again too late: the next slot');
select is(test.actions('r'), '{send_attempt}', 'and still one attempt');
select test.commit('r', test.sent('2b'));
-- No slot within the second: back to the queue until there is one.
select test.tick('1 hour');
select test.say('slot 3');
select test.claimed();
select test.tick('1 second');
update autopost.channels set next_allowed_at = autopost.now_ts() + interval '5 seconds' where channel_id = 'r';
select is(test.start('r') ->> 'reason', 'rate', 'no slot within a second: handed back');
select is((test.row('r')).due_at, autopost.now_ts() - interval '1 second', 'at its own place, before what came later');
select is((test.claimed())[1], null, 'the gate holds it');
select is((test.channel_row('r')).next_allowed_at, autopost.now_ts() + interval '5 seconds', 'no slot is spent');

-- The batch form answers in order.
select test.tick('1 day');
update autopost.channels set enabled = channel_id = 'a', paused_until = null;
update autopost.platform_limits set cooldown_until = null;
select test.posts('batch', 2);
create temp table b on commit drop as select * from test.claim();
create temp table answers on commit drop as
select autopost.start_call_batch('w', jsonb_build_array(
	jsonb_build_object('delivery_id', (select delivery_id from b where rendered_text = 'batch 2'),
		'claim_token', (select claim_token from b where rendered_text = 'batch 2')),
	jsonb_build_object('delivery_id', (select delivery_id from b where rendered_text = 'batch 1'), 'claim_token',
		'lost'))) as a;
select is((select a -> 0 ->> 'applied' from answers), 'true');
select is((select a -> 1 ->> 'reason' from answers), 'stale');
select is((select jsonb_array_length(a) from answers), 2);
select is((select count(*)::int from autopost.events e where e.action = 'send_attempt'
	and e.delivery_id in (select delivery_id from b)), 1);

select * from finish();
rollback;
