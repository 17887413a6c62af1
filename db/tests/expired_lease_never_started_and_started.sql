begin;
\ir fake_clock.sql
\ir world.sql
select plan(27);

select test.channel('started');
select test.channel('idle');
select test.say('x');
create temp table c on commit drop as select * from test.claim();
select test.start('started');

select test.tick('299 seconds');
select is(autopost.recover_sending_leases('w'), '{"recovered": 0, "unknown": 0, "dead": 0}',
	'a lease that runs is left alone');
select test.tick('1 second');
select is(autopost.recover_sending_leases('w'), '{"recovered": 2, "unknown": 1, "dead": 0}');

select is((test.row('idle')).status, 'retry', 'a call that never began is a definite failure');
select is((test.row('idle')).unknown_outcomes, 0);
select is((test.row('idle')).attempt, 1, 'the attempt is spent, and not counted again');
select ok((test.row('idle')).next_retry_at between autopost.now_ts() + interval '1.6 seconds'
	and autopost.now_ts() + interval '2.4 seconds', 'by the central policy');
select is((test.row('idle')).last_error ->> 'code', 'lease_expired');
select is(test.actions('idle'), '{sending_lease_expired,retry_scheduled}');

select is((test.row('started')).status, 'retry', 'one that began is an unknown outcome');
select is((test.row('started')).unknown_outcomes, 1);
select is((test.row('started')).last_error ->> 'code', 'unknown_outcome');
select is((test.row('started')).last_call_at, '2026-06-01 12:00:00+00'::timestamptz,
	'the start time is kept for the lookup');
select ok((test.row('started')).next_retry_at - (test.row('started')).last_call_at >= interval '15 seconds');
select is(test.actions('started'), '{send_attempt,sending_lease_expired,unknown_outcome,retry_scheduled}');
select is((select array_agg(d.claim_token) from autopost.deliveries d), array[null, null]::text[], 'the claim is over');
select is((test.gate('idle')).inflight, 0, 'and its place free');

select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) ->> 'reason', 'stale',
	'a late commit is refused as stale')
from c where channel_id = 'started';
select is(autopost.commit_outcome('w', delivery_id, claim_token,
	test.failure('TRANSIENT', 'delivery', 'x')) ->> 'reason', 'stale')
from c where channel_id = 'idle';
select is(test.count_events('stale_commit'), 2, 'and leaves a trace');

-- The last attempt: never started is dead, started is for a person.
update autopost.settings set value = '2' where key = 'max_attempts';
select test.tick('1 hour');
select test.claimed();
select test.start('started');
select test.tick('1 hour');
select is(autopost.recover_sending_leases('w'), '{"recovered": 2, "unknown": 1, "dead": 1}');
select is((test.row('idle')).status, 'dead');
select is(test.count_events('dead_letter'), 1);
select is((test.row('started')).status, 'failed_permanent');
select is((test.row('started')).last_error ->> 'code', 'unknown_outcome');

-- A renewed lease counts.
select test.say('y');
select test.claimed();
select autopost.extend_lease('w', delivery_id, claim_token, 3600) from test.row('idle');
select test.tick('400 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '1', 'a renewed lease runs on');
select is((test.row('idle')).status, 'sending');
select is(autopost.extend_lease('w', delivery_id, claim_token, 10) ->> 'lease_until',
	to_jsonb((test.row('idle')).sending_lease_until) #>> '{}', 'and is never shortened')
from test.row('idle');

select * from finish();
rollback;
