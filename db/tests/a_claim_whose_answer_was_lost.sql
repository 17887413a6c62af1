begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

select test.channel(c) from unnest('{lost,known,started,others}'::text[]) c;
select test.say('x');
create temp table mine on commit drop as
select c.* from autopost.claim_within('w', 'run-1', 100, '[]') c where c.channel_id <> 'others';
-- One claim, that is, took all four; another run's is like it in all but the run.
update autopost.deliveries set claimed_by = 'run-2' where channel_id = 'others';
select test.start('started');

create function test.release_lost(p_known text[], p_run_id text default 'run-1') returns text
language sql
as $$
select autopost.release_lost('w', p_run_id, p_known) ->> 'released'
$$;

select is(test.release_lost(array(select claim_token from mine)), '0', 'what is in hand stays');
select is((select count(*)::int from autopost.deliveries where status = 'sending'), 4);
select is(test.release_lost('{}', 'run-3'), '0', 'a run that holds nothing loses nothing');

select is(autopost.release_lost('w', 'run-1', array(select claim_token from mine where channel_id = 'known')), '{"applied": true, "released": 1}');
select is((test.row('known')).status, 'sending', 'what the run knows is not released');
select is((test.row('started')).status, 'sending', 'nor what began, known or not');
select is((test.row('others')).status, 'sending', 'nor what another run holds');
select is((test.row('lost')).status, 'retry');
select is((test.row('lost')).granted_attempts, 1, 'another attempt is granted');
select is((test.row('lost')).next_retry_at, autopost.now_ts(), 'and it is due at once');
select is((test.gate('lost')).inflight, 0);
select is((select e.meta ->> 'reason' from autopost.events e where e.action = 'released'), 'answer_lost', 'it is told why');
select is(test.release_lost(array(select claim_token from mine where channel_id = 'known')), '0', 'once');

-- Who has it after all may not go on with it; whoever claims it next may.
select is(autopost.start_call('w', m.delivery_id, m.claim_token) ->> 'reason', 'stale') from mine m where m.channel_id = 'lost';
select is(test.claimed(100, 'run-2'), '{lost}');
select is(test.round('lost', test.sent('1')) ->> 'status', 'sent');
select is((select count(*)::int from autopost.verify('w') v where v.violations > 0), 0);

select * from finish();
rollback;
