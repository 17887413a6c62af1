begin;
\ir fake_clock.sql
\ir world.sql
select plan(23);

select test.channel('a');
update autopost.channels set on_unknown = 'hold';
create function test.hold(p_text text) returns void
language sql
as $$
-- A new delivery that is held after an unknown outcome.
select test.tick('1 hour');
select test.say(p_text);
select test.round('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'))
$$;
create function test.resolve(p_verdict text, p_id text default null) returns jsonb
language sql
as $$
select autopost.resolve_unknown('w', (test.row('a')).delivery_id, p_verdict, p_id, 'olga', 'looked')
$$;

select test.hold('x');
update autopost.channels set error_streak = 2;
select is(test.resolve('found', '77'), '{"applied": true, "status": "sent"}', 'the platform has it');
select is((test.row('a')).provider_message_id, '77');
select is((test.row('a')).sent_at, autopost.now_ts());
select is(test.actions('a'), '{send_attempt,unknown_outcome,retry_scheduled,unknown_resolved,sent}');
select is((select e.meta - 'trace_id' from autopost.events e where e.action = 'unknown_resolved'),
	'{"operator": "olga", "reason": "looked", "verdict": "found"}');
select is((select to_jsonb(l) - '{id,seq,prev_hash,hash}'::text[] from autopost.admin_audit_log l),
	jsonb_build_object('workspace_id', 'w', 'ts', autopost.now_ts(), 'operator', 'olga', 'action', 'resolve_unknown',
	'reason', 'looked', 'subject', 'deliveries', 'login', session_user, 'before', jsonb_build_object((test.row('a')).delivery_id, 'retry'),
		'after', jsonb_build_object((test.row('a')).delivery_id, 'sent')),
	'what a person did is in the log');
select is((test.channel_row('a')).error_streak, 0, 'it counts as sent');
select is((test.gate('a')).last_provider_message_id, '77');
select is((test.gate('a')).inflight, 0);
select is(test.say('x') ->> 'deduped', '1', 'also for the window');
select is(test.resolve('found', '78') ->> 'reason', 'not_unknown', 'once');

select test.hold('y');
select is(test.resolve('absent'), '{"applied": true, "status": "retry"}', 'the platform does not have it');
select is((test.row('a')).next_retry_at, autopost.now_ts());
select is(test.round('a', test.sent('9')) ->> 'status', 'sent', 'it goes again at once');

-- "absent" is an opinion, too: it spends the one allowance.
update autopost.channels set on_unknown = 'reconcile';
select test.hold('z');
select is(test.resolve('absent') ->> 'applied', 'true');
select is(test.round('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status',
	'failed_permanent');

select test.tick('1 second');
select test.say('never called');
select is(test.resolve('found', '1') ->> 'reason', 'not_unknown', 'only what is unknown can be resolved');
select is(autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', 'absent', null, 'o', 'r') ->> 'reason',
	'unknown_delivery');
select throws_ok($$select test.resolve('maybe')$$, 'AP001', null, 'no verdict');
select throws_ok($$select test.resolve('found')$$, 'AP001', null, 'found needs the platform''s id');
select throws_ok($$select autopost.resolve_unknown('w', (test.row('a')).delivery_id, 'absent', null, '', 'r')$$,
	'AP001');
select throws_ok($$select autopost.resolve_unknown('w', (test.row('a')).delivery_id, 'absent', null, 'o', '')$$,
	'AP001');
select throws_ok($$update autopost.deliveries set status = 'sent', sent_at = now(), provider_message_id = '1'
	where status = 'retry' or status = 'queued'$$, 'AP004', null, 'nobody goes around it');

select * from finish();
rollback;
