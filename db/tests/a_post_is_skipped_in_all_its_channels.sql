-- An operator ends the waiting deliveries of a post in all its channels. What was sent stays.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

select test.channel('a'), test.channel('b', p_platform => 'max', p_rate_group => 'other'), test.channel('c');
select test.say('one');
create temp table m on commit drop as select message_id as id from autopost.messages;
select autopost.skip_deliveries('w', array(select d.delivery_id from autopost.deliveries d where d.channel_id = 'c'), 'bob',
	'not here', false);

select is((select autopost.skip_post('w', id, 'ann', 'outdated', true) -> 'skipped' from m), '2', 'a dry run counts');
select is((select count(*)::int from autopost.deliveries where status = 'queued'), 2, 'and changes nothing');
insert into autopost.fanout_jobs (workspace_id, job_id, message_id, run_id, trace_id, post, planned)
	select 'w', gen_random_uuid(), id, gen_random_uuid(), gen_random_uuid(), '{}', 3 from m;
select is((select autopost.skip_post('w', id, 'ann', 'outdated', false) ->> 'reason' from m), 'fanout_running');
delete from autopost.fanout_jobs;
select is((select autopost.skip_post('w', id, 'ann', 'outdated', false) - 'results' from m),
	'{"applied": true, "dry_run": false, "skipped": 2, "waiting": 0}');
select is((select array_agg(d.channel_id order by d.channel_id) from autopost.deliveries d
	where d.last_error ->> 'message' = 'outdated'), '{a,b}');
select is((select count(*)::int from autopost.events where action = 'manual_skip'), 3);
select is((select array_agg(operator || ' ' || reason) from autopost.admin_audit_log where action = 'skip_deliveries'
	and operator = 'ann'), '{ann outdated}');
select is((select autopost.skip_post('w', id, 'ann', 'outdated', false) ->> 'reason' from m), 'nothing_waits');
select is(autopost.skip_post('w', gen_random_uuid(), 'ann', 'outdated', false) ->> 'reason', 'unknown_message');

select * from finish();
rollback;
