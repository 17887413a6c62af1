-- Alerts of the installation belong to the operator workspace; integrity alerts to their own workspace.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(56);
update autopost.workspaces set created_at = '2026-01-02' where workspace_id = 'w';
insert into autopost.workspaces (workspace_id, created_at) values ('older', '2026-01-01');
-- The clock of this test stands in a month without partitions.
select autopost.ensure_event_partitions();

create function test.look() returns text[]
language sql
as $$
select autopost.check_installation();
select set_config('autopost.workspace_id', '', true);
select coalesce(array_agg(format('%s %s %s %s', a.workspace_id, a.kind, a.subject, a.amount)
	order by a.kind, a.subject), '{}')
from autopost.alerts a where a.ended_at is null and a.look = 'installation'
$$;
create function test.over() returns text[]
language sql
as $$
select test.look();
select test.tick('3 minutes');
select test.look()
$$;
create function test.report(p_duty text, p_error text default null, p_run text default 'one',
	p_ahead interval default '0', p_config text default 'c') returns jsonb
language sql
as $$
select autopost.report_duty(p_run, p_duty, autopost.now_ts() + p_ahead, p_config, p_error)
$$;

select is(test.look(), '{}', 'where nobody dispatched yet, nobody is missed');

-- Daemons.
select autopost.touch_run('one');
select test.tick('179 seconds');
select is(test.look(), '{}');
select test.tick('1 second');
select is(test.look(), '{"older no_dispatcher daemons 180"}', 'the oldest workspace is the operator''s');
select is((select a.severity from autopost.alerts a), 'critical');
select test.set('operator_workspace', '"w"');
select is(test.look(), '{"w no_dispatcher daemons 180"}', 'the workspace of the setting gets it instead');
select test.set('operator_workspace', '"nowhere"');
select is(test.look(), '{"older no_dispatcher daemons 180"}', 'unless it does not exist');
select autopost.touch_run('two');
select test.look();
select test.tick('140 seconds');
select is(test.look(), '{}', 'another daemon is enough');
select test.set('alert_daemon_silence_seconds', '0');

-- Duties, three times in a row.
select is(test.report('leases', 'connection refused') -> 'applied', 'true');
select test.report('leases', 'connection refused');
select is(test.look(), '{}');
select test.report('leases', 'connection refused');
select is(test.look(), '{"older duty_failing duty:leases 3"}');
select is((select a.what from autopost.alerts a where a.kind = 'duty_failing'),
	'leases failed 3 times in a row: connection refused');
select test.report('leases', null, 'two');
select is(test.look(), '{"older duty_failing duty:leases 3"}', 'a working second monitor does not end it');
select test.report('leases');
select is(test.over(), '{}');
select is((select array_agg(array[d.failures::text, d.error]) from autopost.monitor_duties d where d.run_id = 'one'),
	array[array['0', null]]);
select test.report('media', 'token=abcdefgh', 'gone') from generate_series(1, 3);
select is(test.look(), '{"older duty_failing duty:media 3"}');
select ok((select a.what not like '%abcdefgh%' from autopost.alerts a where a.ended_at is null),
	'it contains no secret');
select test.tick('16 minutes');
select is(test.over(), '{}', 'a monitor that is gone fails at nothing');

-- Disks, at once.
select test.report('disks', 'the disk of the media: 0.9 of 20.0 GB are free at /media');
select is(test.look(), '{"older disk_low disks 1"}', 'raised at the first report, without a failing duty');
select test.report('disks', 'the disk of the database: 0.1 of 9.0 GB are free at /pg', 'two');
select is(test.look(), '{"older disk_low disks 2"}');
select is((select a.severity || ' ' || a.what from autopost.alerts a where a.kind = 'disk_low'),
	'critical the disk of the database: 0.1 of 9.0 GB are free at /pg; the disk of the media: 0.9 of 20.0 GB are free at /media');
select test.report('disks'), test.report('disks', null, 'two');
select is(test.over(), '{}', 'room was made');

-- Clocks and configurations.
select test.report('watch', null, 'one', '1999 milliseconds');
select is(test.look(), '{}');
select test.report('watch', null, 'one', '-2 seconds');
select is(test.look(), '{"older clock_skew clocks 2000"}');
select test.report('watch', null, 'one', '1700 milliseconds');
select is(test.over(), '{"older clock_skew clocks 1700"}', 'not yet by far enough');
select test.report('watch');
select is(test.over(), '{}');
insert into autopost.clock_jumps values (autopost.new_id(), autopost.now_ts(), '-1 day', 'one');
select is(test.look(), '{"older clock_jumped clocks 86400000"}');
select test.tick('61 minutes');
select test.report('watch');
select is(test.over(), '{}', 'it lasts an hour');
select test.report('watch', null, 'two', '0', 'd');
select is(test.look(), '{"older config_differs daemons 1"}');
select test.report('watch', null, 'two');
select is(test.over(), '{}');

-- A daemon that was restarted with another environment does not differ from itself.
create function test.found() returns text[]
language sql
as $$
select coalesce(array_agg(f ->> 'kind' order by f ->> 'kind'), '{}')
from autopost.look_at_installation(autopost.alert_levels(), autopost.now_ts()) f
where f ->> 'kind' in ('config_differs', 'disk_low', 'duty_failing')
$$;
select autopost.touch_run('three', 'web-1'), test.report('watch', null, 'three', '0', 'd');
select test.report('disks', 'full', 'three'), test.report('leases', 'refused', 'three') from generate_series(1, 3);
select is(test.found(), '{config_differs,disk_low,duty_failing}');
select autopost.touch_run('three', 'web-1', true);
select is(test.found(), '{}', 'a daemon that ended');
select autopost.touch_run('four', 'web-1'), test.report('watch', null, 'four', '0', 'e');
select is(test.found(), '{config_differs}');
select test.tick('1 second'), autopost.touch_run('five', 'web-1');
select is(test.found(), '{}', 'a daemon that was killed and replaced');
select test.report('watch', null, 'five', '0', 'f');
select is(test.found(), '{config_differs}');
select test.tick('1 minute'), test.report('watch');
select is(test.found(), '{}', 'a silent daemon');
select test.report('watch', null, 'five', '0', 'f');
select is(test.found(), '{config_differs}', 'its monitor reports, so it is alive');
delete from autopost.monitor_duties where run_id in ('three', 'four', 'five');
delete from autopost.dispatch_runs where host = 'web-1';

-- Stages that panicked, at once and without a failing duty.
select test.report('stage:dispatch', 'panic: runtime error');
select test.report('stage:dispatch', 'panic: runtime error', 'two') from generate_series(1, 4);
select is(test.look(), '{"older stage_panicked stage:dispatch 5"}');
select is((select a.what from autopost.alerts a where a.kind = 'stage_panicked'),
	'the stage dispatch panicked 5 times: panic: runtime error');
select test.tick('16 minutes');
select is(test.over(), '{}', 'a stage that works for a while is healthy');
-- A workspace whose targets all fail is reported to those of the installation.
select test.bind();
select autopost.put_alert_target('w', t, jsonb_build_object('kind', 'telegram', 'address', '-1', 'auth_ref', 'bot', 'enabled',
	t <> 'off'), 'ann', 'test', false) from unnest('{chat,mail,off}'::text[]) t;
update autopost.alert_targets set failures = 1, last_error = '{"category": "PERMANENT", "message": "Unauthorized"}'
	where target_id = 'chat';
update autopost.alert_targets set failures = 2, last_error = '{"message": "down"}' where target_id = 'mail';
select is(test.look(), '{}');
update autopost.alert_targets set failures = 3 where target_id = 'mail';
select is(test.look(), '{"older alerts_undelivered workspace:w 1"}');
select is((select a.what from autopost.alerts a where a.kind = 'alerts_undelivered'),
	'the alerts of workspace w reach nobody: Unauthorized');
update autopost.alert_targets set failures = 0 where target_id = 'mail';
select is(test.over(), '{}');

-- Partitions.
select is(test.look(), '{}');
do $$
begin
	execute format('drop table autopost.%I', 'events_' || to_char((autopost.now_ts() at time zone 'UTC')::date + 1,
		'YYYYMMDD'));
end
$$;
select is(test.look(), '{"older partitions_missing events 1"}');
select autopost.ensure_event_partitions();
select is(test.over(), '{}');
insert into autopost.events (workspace_id, id, ts, action, result)
	values ('w', gen_random_uuid(), '1999-01-01', 'enqueue', 'ok');
select is(test.look(), '{"older events_without_partition events 1"}');
delete from autopost.events where ts < '2000-01-01';
select is(test.over(), '{}');

-- Reports of ended daemons are deleted.
select test.tick('3 days');
select autopost.ensure_event_partitions();
select test.look();
select is((select count(*)::int from autopost.monitor_duties), 0);

-- Integrity.
select autopost.set_event_strictness(false);
insert into autopost.events (workspace_id, id, message_id, ts, action, result)
values ('w', gen_random_uuid(), gen_random_uuid(), date_trunc('day', autopost.now_ts(), 'UTC') - interval '1 hour',
	'enqueue', 'ok');
select is(autopost.check_integrity('w') -> 'orphans' -> 0 ->> 'kind', 'events.message_id');
select is((select array_agg(a.kind || ' ' || a.subject) from autopost.alerts a
	where a.ended_at is null and a.look = 'integrity'), '{"orphans events.message_id"}');
select autopost.check_integrity('w');
select is((select count(*)::int from autopost.alerts a where a.kind = 'orphans'), 1, 'once');
select autopost.put_workspace('w', '{"name": "n"}', 'ann', 'r', false);
set local session_replication_role = replica;
update autopost.admin_audit_log set reason = 'another';
set local session_replication_role = origin;
select is(autopost.check_integrity('w') -> 'audit' -> 0 ->> 'what', 'it was changed');
select is((select a.severity from autopost.alerts a where a.kind = 'audit_chain'), 'critical');
select test.tick('1 day');
select is(jsonb_array_length(autopost.check_integrity('w') -> 'orphans'), 0);
select is((select array_agg(a.kind) from autopost.alerts a where a.ended_at is null and a.look = 'integrity'),
	'{audit_chain}', 'a look that finds nothing ends it');

select * from finish();
rollback;
