begin;
\ir fake_clock.sql
\ir world.sql
select plan(25);
set local synchronous_commit = on;

-- claim_and_start starts the calls whose slot is due and whose credential the caller knows.
create function test.begun() returns text[]
language sql
as $$
select coalesce(array_agg(c.channel_id order by c.channel_id) filter (where c.call_begun_at is not null), '{}')
from autopost.claim_and_start('w', 'run-1', 100, '[]', '{bot,probe}') c
$$;

select test.channel('a'), test.channel('b'), test.channel('other', p_rate_group => 'other');
update autopost.channels set auth_ref = 'other' where channel_id = 'other';
select test.say('one');
create temp table got on commit drop as select c.* from autopost.claim_and_start('w', 'run-1', 100, '[]', '{bot}') c;
select is((select array_agg(g.channel_id order by g.channel_id) from got g), '{a,b,other}', 'all are claimed');
select is((select array_agg(g.channel_id order by g.channel_id) from got g where g.call_begun_at is not null), '{a,b}',
	'those of the known credential are started');
select ok((select bool_and(g.call_begun_at = autopost.now_ts()) from got g where g.channel_id <> 'other'), 'now');
select is((select bool_and(d.call_begun_at = g.call_begun_at) from got g join autopost.deliveries d
	on d.delivery_id = g.delivery_id where g.channel_id <> 'other'), true, 'the row is marked');
select is((select g.deadline from got g where g.channel_id = 'a'),
	(autopost.start_call('w', g.delivery_id, g.claim_token) ->> 'deadline')::timestamptz, 'the deadline is that of start_call')
from got g where g.channel_id = 'a';
select is(autopost.start_call('w', g.delivery_id, g.claim_token) ->> 'repeated', 'true', 'a start is a repetition')
from got g where g.channel_id = 'a';
select is((select g.deadline from got g where g.channel_id = 'other'), null, 'an unstarted claim has no deadline');
select is(test.actions('a'), '{send_attempt}', 'one event');
select is((select e.meta - 'idempotency_key' - 'trace_id' from autopost.events e where e.action = 'send_attempt' and e.channel_id = 'a'),
	'{"run_id": "run-1"}');
select is(test.actions('other'), '{}');
select is(current_setting('synchronous_commit'), 'on', 'a started call is durable');
select is(test.commit('a', test.sent('1')) ->> 'status', 'sent');
select is(test.actions('a'), '{send_attempt,sent}', 'the commit adds no start');
select is(test.start('other') ->> 'applied', 'true', 'the other needs start_call');
select is(autopost.release_lost('w', 'run-1', '{}') - 'started', '{"applied": true, "released": 0}', 'started claims stay');
select is((select array_agg(s.value ->> 'delivery_id') from jsonb_array_elements(autopost.release_lost('w', 'run-1',
	array[(test.row('other')).claim_token]) -> 'started') s), array[(test.row('b')).delivery_id::text], 'the unknown one is returned');
select test.commit('b', test.sent('2')), test.commit('other', test.sent('3'));

-- A slot ahead is not due.
select test.channel('slow', 10, 10, p_rate_group => 'slow');
select test.tick('10 seconds'), test.posts('spaced', 1);
update autopost.channels c set enabled = false where c.channel_id <> 'slow';
select test.posts('spaced', 3);
select is((select array_agg(c.call_begun_at is not null order by c.send_at)
	from autopost.claim_and_start('w', 'run-1', 3, '[]', '{slow}') c), '{t,f,f}', 'of three slots the due one is started');
select test.tick('100 milliseconds');
select is(autopost.start_call('w', d.delivery_id, d.claim_token) ->> 'applied', 'true', 'the next is started at its slot')
from autopost.deliveries d where d.status = 'sending' and d.send_at = autopost.now_ts();

-- A call that start_call would refuse or replace is claimed, not started.
update autopost.channels c set enabled = c.channel_id = 'probe' where c.channel_id <> 'probe';
select test.channel('probe', p_rate_group => 'probe');
insert into autopost.platform_limits (workspace_id, platform, rate_group, breaker_opened_at, probe_at)
values ('w', 'telegram', 'probe', autopost.now_ts(), autopost.now_ts());
select test.say('probe');
select is(test.begun(), '{}', 'a probe of an open breaker needs start_call');
select is((test.row('probe')).status, 'sending');
select is(test.start('probe') ->> 'applied', 'true');

select test.channel('closing');
update autopost.channels c set window_mode = 'windowed', timezone = 'UTC', posting_window = '{"mon": [["00:00", "12:30"]]}'
where c.channel_id = 'closing';
select test.set_clock('2026-06-01 12:29:59.5+00'), test.say('closing');
select is(test.begun(), '{}', 'a window that closes soon needs start_call');
select is((test.row('closing')).status, 'sending');

select throws_ok($$ select autopost.claim_and_start('w', 'r', 1, '[]', null) $$, 'AP001');
select throws_ok($$ select autopost.claim_and_start('w', 'r', 1, '[]', '{null}') $$, 'AP001');
select * from finish();
rollback;
