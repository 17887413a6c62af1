begin;
\ir fake_clock.sql
\ir world.sql
select plan(34);

select test.channel('a', p_max_parallel => 10);
update autopost.settings set value = '1' where key = 'max_attempts';
create function test.requeue(p_ids uuid[]) returns jsonb
language sql
as $$
select autopost.manual_requeue('w', p_ids, 'olga', 'fixed')
$$;

-- dead
select test.say('x');
select test.round('a', test.failure('TRANSIENT', 'delivery', 'http_500'));
select is((test.row('a')).status, 'dead');
create temp table r on commit drop as select test.requeue(array[(test.row('a')).delivery_id]) as answer;
select is((select answer - 'results' from r), '{"applied": true, "requeued": 1}');
select is((select (answer #> '{results,0}') - 'delivery_id' from r), '{"applied": true, "before": "dead", "after": "retry"}');
select is((test.row('a')).status, 'retry');
select is((test.row('a')).attempt, 1, 'attempt is not touched');
select is((test.row('a')).granted_attempts, 1, 'one more is granted');
select is((test.row('a')).finished_at, null);
select is((select e.meta - 'trace_id' from autopost.events e where e.action = 'manual_requeue'),
	'{"operator": "olga", "reason": "fixed", "manual": true, "from_status": "dead"}');
select is((select e.attempt from autopost.events e where e.action = 'manual_requeue'), 1);
select is(test.requeue(array[(test.row('a')).delivery_id]) -> 'results' -> 0 ->> 'reason', 'not_failed', 'once');
select is(test.round('a', test.failure('TRANSIENT', 'delivery', 'http_500')) ->> 'status', 'dead',
	'one attempt and no more');
select is((test.row('a')).attempt, 2);

-- failed by a refusal of this very delivery
select test.tick('1 second');
select test.say('y');
select test.round('a', test.failure('PERMANENT', 'delivery', 'http_400'));
select is(test.requeue(array[(test.row('a')).delivery_id]) ->> 'requeued', '1');
select is(test.round('a', test.sent('1')) ->> 'status', 'sent');
select is(test.requeue(array[(test.row('a')).delivery_id]) -> 'results' -> 0 ->> 'reason', 'not_failed',
	'what is sent is final');

-- failed by the channel: it must be resumed first
select test.tick('1 second');
select test.say('z');
select test.round('a', test.failure('PERMANENT', 'channel', 'http_403'));
select is(test.requeue(array[(test.row('a')).delivery_id]) -> 'results' -> 0 ->> 'reason', 'channel_not_resumed');
update autopost.channels set paused_until = null, enabled = false;
select is(test.requeue(array[(test.row('a')).delivery_id]) -> 'results' -> 0 ->> 'reason', 'channel_not_resumed',
	'disabled is not resumed');
update autopost.channels set enabled = true;
select is(test.requeue(array[(test.row('a')).delivery_id]) ->> 'requeued', '1');

-- an unknown outcome: one more of those is granted, too
select test.tick('1 day');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where claim_token is not null));
update autopost.channels set enabled = false;
select test.channel('b');
select test.say('u');
select test.round('b', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is((test.row('b')).status, 'failed_permanent');
select test.requeue(array[(test.row('b')).delivery_id]);
select is((test.row('b')).unknown_allowance, 2);
update autopost.settings set value = '5' where key = 'max_attempts';
select is(test.round('b', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status', 'retry',
	'which may end so once more');
select test.tick('1 hour');
select is(test.round('b', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status',
	'failed_permanent', 'but not for ever');

-- never valid: it would only be refused again
select test.tick('1 second');
select test.say(repeat('l', 5000));
select is(test.requeue(array[(test.row('b')).delivery_id]) -> 'results' -> 0 ->> 'reason', 'never_valid');

-- the same content is in flight, or was sent meanwhile
select test.tick('1 second');
select test.say('w');
select test.round('b', test.failure('PERMANENT', 'delivery', 'http_400'));
create temp table failed on commit drop as select (test.row('b')).delivery_id;
select test.tick('1 second');
select test.say('w');
select is(test.requeue(array[(select delivery_id from failed)]) -> 'results' -> 0 ->> 'reason', 'duplicate',
	'queued again meanwhile');
select test.round('b', test.sent('2'));
select is(test.requeue(array[(select delivery_id from failed)]) -> 'results' -> 0 ->> 'reason', 'duplicate',
	'sent meanwhile');
select test.tick('168 hours');
select is(test.requeue(array[(select delivery_id from failed)]) ->> 'requeued', '1', 'after the window it may');

-- many: each has its answer, in order
create temp table many on commit drop as
	select test.requeue(array['00000000-0000-7000-8000-000000000000', (select delivery_id from failed)]::uuid[])
	as answer;
select is((select jsonb_path_query_array(answer, '$.results[*].reason') from many),
	'["unknown_delivery", "not_failed"]');
select is((select answer ->> 'applied' from many), 'false');

-- nobody goes around it
select throws_ok($$update autopost.deliveries set status = 'retry', next_retry_at = now()
	where status in ('dead', 'failed_permanent')$$, 'AP004');
select throws_ok($$select autopost.manual_requeue('w', array[(test.row('b')).delivery_id], '', 'r')$$, 'AP001', null,
	'no operator');
select throws_ok($$select autopost.manual_requeue('w', array[(test.row('b')).delivery_id], 'o', null)$$, 'AP001', null,
	'no reason');
select throws_ok($$select autopost.manual_requeue('w', '{}', 'o', 'r')$$, 'AP001', null, 'nothing to requeue');
select throws_ok($$select autopost.manual_requeue('w', null, 'o', 'r')$$, 'AP001');
select is(current_setting('autopost.manual_act'), '', 'the permission ends with the act');

select * from finish();
rollback;
