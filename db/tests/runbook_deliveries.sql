begin;
\ir fake_clock.sql
\ir world.sql
select plan(37);

select test.channel('a', p_max_parallel => 10);
create function test.state() returns jsonb
language sql
as $$
-- All that an act may change.
select jsonb_build_array((select jsonb_agg(d order by d.delivery_id) from autopost.deliveries d), (select jsonb_agg(g)
	from autopost.channel_gates g),
	(select count(*) from autopost.events), (select count(*) from autopost.admin_audit_log))
$$;
create function test.logged() returns autopost.admin_audit_log
language sql
as $$
select l from autopost.admin_audit_log l order by l.seq desc limit 1
$$;
create temp table was on commit drop as select null::jsonb as s;
create temp table act on commit drop as select null::jsonb as dry, null::jsonb as wet;

-- skip: one that waits, one unknown, one twice
select test.say('x');
create temp table ids on commit drop as
select array[(test.row('a')).delivery_id, '00000000-0000-7000-8000-000000000000', (test.row('a')).delivery_id] as list;
update was set s = test.state();
update act set dry = autopost.skip_deliveries('w', (select list from ids), 'olga', 'recalled', true);
select is(test.state(), (select s from was), 'a dry run changes nothing');
update act set wet = autopost.skip_deliveries('w', (select list from ids), 'olga', 'recalled', false);
select is((select dry || '{"dry_run": false}' from act), (select wet from act), 'and answers what the act would');
select is((select wet - 'results' from act), '{"applied": true, "dry_run": false, "skipped": 1}');
select is((select jsonb_path_query_array(wet, '$.results[*].reason') from act), '["unknown_delivery"]', 'each id once');
select is((test.row('a')).status, 'dead');
select is((test.row('a')).last_error ->> 'code', 'manual_skip');
select is((test.row('a')).finished_at, autopost.now_ts());
select is((select e.meta - 'trace_id' from autopost.events e where e.action = 'manual_skip'),
	'{"manual": true, "operator": "olga", "reason": "recalled", "from_status": "queued"}');
select is((test.logged()).action, 'skip_deliveries');
select is((test.logged()).after, jsonb_build_object((test.row('a')).delivery_id, 'dead'));
select is(test.claimed(), '{}', 'it is not sent');
select is((autopost.skip_deliveries('w', (select list from ids), 'o', 'r', false)) #>> '{results,0,reason}',
	'not_waiting');

-- what was skipped can be brought back, and that is recorded, too
select test.tick('1 second');
update was set s = test.state();
update act set dry = autopost.manual_requeue_preview('w', (select list from ids));
select is(test.state(), (select s from was), 'a preview changes nothing');
select is((select dry - 'results' from act), '{"applied": true, "dry_run": true, "requeued": 1}');
select is((select jsonb_path_query_array(dry, '$.results[*].applied') from act), '[true, false]', 'each id once');
select is((select (dry #> '{results,0}') - 'delivery_id' from act), '{"applied": true, "before": "dead", "after": "retry"}');
update act set wet = autopost.manual_requeue('w', (select list from ids), 'olga', 'after all');
select is((select wet ->> 'requeued' from act), '1');
select is((test.logged()).action, 'manual_requeue');
select is((test.logged()).before, jsonb_build_object((test.row('a')).delivery_id, 'dead'));
select is((test.logged()).after, jsonb_build_object((test.row('a')).delivery_id, 'retry'));

-- release: young ones stay; one never began, one did
select test.tick('1 second');
select test.say('y');
select is(cardinality(test.claimed()), 2);
select test.start('a');
update act set wet = autopost.release_stale('w', 600, 'olga', 'host lost', false);
select is((select wet from act), '{"applied": false, "dry_run": false, "released": 0, "unknown": 0, "results": []}',
	'not yet ten minutes');
select is((select count(*)::int from autopost.admin_audit_log), 2, 'what changes nothing is not recorded');
select test.tick('11 minutes');
update was set s = test.state();
update act set dry = autopost.release_stale('w', 600, 'olga', 'host lost', true);
select is(test.state(), (select s from was), 'a dry run changes nothing');
select is((select dry - 'results' from act), '{"applied": true, "dry_run": true, "released": 1, "unknown": 1}');
update act set wet = autopost.release_stale('w', 600, 'olga', 'host lost', false);
select is((select wet - 'results' from act), '{"applied": true, "dry_run": false, "released": 1, "unknown": 1}');
select is((select array_agg(status || ' ' || unknown_outcomes || ' ' || granted_attempts order by delivery_id)
	from autopost.deliveries), '{retry 0 2,retry 1 0}',
	'the attempt that never began is granted again; the other may stand there already');
select is(test.actions('a'), '{send_attempt,sending_lease_expired,unknown_outcome,retry_scheduled}');
select is((select array_agg(d.due_at - autopost.now_ts() >= case when d.unknown_outcomes > 0 then interval '15 seconds'
	else '0' end and (d.unknown_outcomes > 0 or d.due_at <= autopost.now_ts())) from autopost.deliveries d), '{t,t}',
	'a row without a begun call is due at once, a begun call waits 15 seconds at least');
select is((select e.meta - '{trace_id,run_id}'::text[] from autopost.events e where e.action = 'released'),
	'{"manual": true, "operator": "olga", "reason": "host lost", "from_status": "sending"}');
select is((test.logged()).action, 'release_stale');
select is((test.gate('a')).inflight, 0);
select is(test.claimed(), '{a}', 'what never began goes at once');
select is((select coalesce(sum(v.violations), 0)::int from autopost.verify('w') v where v.invariant <> 'I18'), 0,
	'and every invariant holds');

-- what a two-phase caller left claimed returns to the queue; it had no attempt to grant again
select test.channel('b');
select test.tick('1 second');
select autopost.enqueue_messages_and_deliveries('w', 'in', 'api',
	'{"text": "z", "routing": {"include_channels": ["b"]}}');
update autopost.deliveries set status = 'claimed', claimed_at = autopost.now_ts(), claimed_by = 'flow',
	claim_token = 't' where channel_id = 'b';
select test.tick('11 minutes');
select autopost.release_stale('w', 600, 'olga', 'flow gone', false);
select is((test.row('b')).status, 'queued');
select is((test.row('b')).granted_attempts, 0);
select is(test.actions('b'), '{claimed_lease_expired}');

select * from finish();
rollback;
