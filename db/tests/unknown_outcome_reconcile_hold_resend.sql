-- Next steps after an unknown outcome, by the channel's policy.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(37);

select test.channel(c) from unnest('{reconcile,hold,resend}'::text[]) c;
-- apart, or three that fail open the group's breaker
update autopost.channels set on_unknown = channel_id, rate_group = channel_id;
select test.say('x');

create function test.lost(p_channel text) returns jsonb
language sql
as $$
-- A whole turn that ends without an answer.
select test.tick('1 hour');
select test.round(p_channel, test.failure('TRANSIENT', 'platform', 'timeout',
	'{"known": false, "retry_after_ms": 5000}'))
$$;

-- reconcile: one more call in the life of the delivery, then it is for a person.
create temp table r on commit drop as select test.lost('reconcile') as answer;
select is((select answer ->> 'status' from r), 'retry');
select is((test.row('reconcile')).unknown_outcomes, 1, 'counted');
select is((test.row('reconcile')).outcome_unknown_at, autopost.now_ts());
select is((test.row('reconcile')).last_error ->> 'code', 'unknown_outcome');
select is((test.row('reconcile')).last_error ->> 'cause', 'timeout');
select ok((test.row('reconcile')).next_retry_at >= autopost.now_ts() + interval '5 seconds',
	'the wait of the platform is a lower bound');
select ok((select cooldown_until is null from test.channel_row('reconcile')), 'no penalty: nothing is known');
select is((select claimed.unknown_outcomes from test.row('reconcile') claimed), 1);
select is(test.lost('reconcile') ->> 'status', 'failed_permanent', 'the second unknown outcome is the last');
select is((test.row('reconcile')).last_error ->> 'code', 'unknown_outcome');
select is((test.row('reconcile')).attempt, 2, 'two calls at most: two copies at most');
select is((test.channel_row('reconcile')).error_streak, 0, 'and no fault of the channel');
select is(test.actions('reconcile'),
	'{send_attempt,unknown_outcome,retry_scheduled,send_attempt,unknown_outcome,failed_permanent}');

-- A definite failure between them does not renew the allowance.
select test.post('{"text": "y", "routing": {"include_channels": ["reconcile"]}}');
select test.lost('reconcile');
select test.tick('1 hour');
select is(test.round('reconcile', test.failure('TRANSIENT', 'delivery', 'http_500')) ->> 'status', 'retry');
select is(test.lost('reconcile') ->> 'status', 'failed_permanent',
	'the allowance is spent once in the life of a delivery');

-- hold: never again until somebody has looked.
select is(test.lost('hold') ->> 'status', 'retry');
select is((test.row('hold')).next_retry_at, 'infinity', 'held');
select test.tick('1000 days');
select is((select count(*)::int from test.claim() where channel_id = 'hold'), 0, 'for ever');
select is((test.row('hold')).attempt, 1, 'one call: one copy');

-- resend: until the attempts are used up, and then failed, never dead: a copy may stand.
select is(test.lost('resend') ->> 'status', 'retry', 'unknown outcome ' || n) from generate_series(1, 4) n;
select is(test.lost('resend') ->> 'status', 'failed_permanent', 'the last attempt without an answer');
select is((test.row('resend')).attempt, 5);
select is((test.row('resend')).unknown_outcomes, 5);
select is((test.row('resend')).last_error ->> 'code', 'unknown_outcome');
select is(test.count_events('dead_letter'), 0);

-- A last attempt that is unknown under any policy.
update autopost.settings set value = '1' where key = 'max_attempts';
update autopost.channels set on_unknown = 'hold' where channel_id = 'resend';
select test.post('{"text": "z", "routing": {"include_channels": ["resend"]}}');
select is(test.lost('resend') ->> 'status', 'failed_permanent');
select is((test.row('resend')).finished_at, autopost.now_ts());

-- An outcome without "known" is known: 4xx, 429, a complete answer.
update autopost.channels set on_unknown = 'reconcile' where channel_id = 'resend';
update autopost.settings set value = '5' where key = 'max_attempts';
select test.post('{"text": "q", "routing": {"include_channels": ["resend"]}}');
select test.claimed();
select test.start('resend');
select is(test.commit('resend', '{"ok": false, "error": {"category": "TRANSIENT", "code": "http_502"}}') ->> 'status',
	'retry');
select is((test.row('resend')).unknown_outcomes, 0);

-- PERMANENT does not make an unknown outcome known.
select test.tick('1 hour');
select is(test.round('resend', test.failure('PERMANENT', 'channel', 'garbled', '{"known": false}')) ->> 'status',
	'retry');
select is((test.row('resend')).unknown_outcomes, 1);
select ok((test.channel_row('resend')).paused_until is null);
select test.tick('1 hour');
select is(test.round('resend', test.sent('1')) ->> 'status', 'sent', 'a resend that is answered ends it');
select is((test.row('resend')).unknown_outcomes, 1, 'the history stays');

select * from finish();
rollback;
