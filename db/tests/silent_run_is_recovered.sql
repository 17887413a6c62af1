begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel(c) from unnest('{a,b,c}'::text[]) c;
select test.say('x');
select autopost.touch_run('daemon'), autopost.touch_run('other');
select test.claimed(1, 'daemon'), test.claimed(1, 'other'), test.claimed(1, 'n8n');
select is((select array_agg(claimed_by order by claimed_by) from autopost.deliveries), '{daemon,n8n,other}');

select test.tick('44.9 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '0', 'a heartbeat may be late');
select autopost.touch_run('other');
select test.tick('0.1 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '1', 'after 45 seconds of silence its leases are over');
select is((select array_agg(claimed_by order by claimed_by) from autopost.deliveries where status = 'sending'),
	'{n8n,other}',
	'those of a run that is heard are not, nor those of one that never had a heartbeat');
select is((select array_agg(e.action order by e.ts, e.cmin::text::int, e.ctid) from autopost.events e
	where e.action in ('sending_lease_expired', 'retry_scheduled')),
	'{sending_lease_expired,retry_scheduled}');
select is((select e.meta ->> 'run_id' from autopost.events e where e.action = 'sending_lease_expired'), 'daemon');
select test.tick('254.9 seconds');
select autopost.touch_run('other');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '0');
select test.tick('0.1 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '2', 'a full lease is a full lease for both');

select * from finish();
rollback;
