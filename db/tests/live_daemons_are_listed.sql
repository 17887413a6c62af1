-- list_daemons returns the live daemons, their configuration and the failing duties of the monitor.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select is((select count(*)::int from autopost.list_daemons()), 0);
select autopost.touch_run('one'), autopost.touch_run('two');
select autopost.report_duty('one', 'watch', autopost.now_ts() + interval '3 seconds', 'digest', null);
select autopost.report_duty('one', 'purge', autopost.now_ts() + interval '3 seconds', 'digest', 'the disk is full');
select is((select to_jsonb(l) - 'seen_at' from autopost.list_daemons() l where run_id = 'one'),
	'{"run_id": "one", "alive": true, "config": "digest", "skew_ms": 3000, "failing": ["purge"]}');
select is((select to_jsonb(l) - 'seen_at' from autopost.list_daemons() l where run_id = 'two'),
	'{"run_id": "two", "alive": true, "config": null, "skew_ms": null, "failing": []}', 'one without a monitor');
select test.tick('44 seconds');
select autopost.touch_run('two');
select is((select array_agg(alive) from autopost.list_daemons()), '{t,t}');
select test.tick('1 second');
select is((select array_agg(run_id || ' ' || alive) from autopost.list_daemons()), '{"two true","one false"}',
	'without a heartbeat for as long as leases allow');
select autopost.touch_run('two', null, true);
select is((select array_agg(run_id || ' ' || alive) from autopost.list_daemons()), '{"two false","one false"}',
	'a stopped daemon is gone at once');
select test.tick('24 hours');
select is((select count(*)::int from autopost.list_daemons()), 0, 'long ago');
set local role autopost_caller;
select throws_ok('select * from autopost.list_daemons()', '42501');
reset role;

select * from finish();
rollback;
