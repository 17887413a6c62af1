begin;
\ir fake_clock.sql
\ir world.sql
select plan(26);

select test.channel(c) from unnest('{lost,known,started,others}'::text[]) c;
select test.say('x');
create temp table mine on commit drop as
select c.* from autopost.claim_within('w', 'run-1', 100, '[]') c where c.channel_id <> 'others';
-- One claim took all four. A claim of another run differs only in the run.
update autopost.deliveries set claimed_by = 'run-2' where channel_id = 'others';
select test.start('started');

create function test.release_lost(p_known text[], p_run_id text default 'run-1') returns text
language sql
as $$
select autopost.release_lost('w', p_run_id, p_known) ->> 'released'
$$;

select is(test.release_lost(array(select claim_token from mine)), '0', 'known claims stay');
select is((select count(*)::int from autopost.deliveries where status = 'sending'), 4);
select is(test.release_lost('{}', 'run-3'), '0', 'a run without claims loses nothing');

select is(autopost.release_lost('w', 'run-1', array(select claim_token from mine where channel_id = 'known')),
	jsonb_build_object('applied', true, 'released', 1, 'started', jsonb_build_array(jsonb_build_object(
		'delivery_id', (test.row('started')).delivery_id, 'claim_token', (test.row('started')).claim_token))));
select is((test.row('known')).status, 'sending', 'what the run knows is not released');
select is((test.row('started')).status, 'sending', 'nor what began, known or not');
select is((test.row('others')).status, 'sending', 'nor what another run holds');
select is((test.row('lost')).status, 'retry');
select is((test.row('lost')).granted_attempts, 1, 'another attempt is granted');
select is((test.row('lost')).next_retry_at, autopost.now_ts(), 'and it is due at once');
select is((test.gate('lost')).inflight, 0);
select is((select e.meta ->> 'reason' from autopost.events e where e.action = 'released'), 'answer_lost',
	'the event has the reason');
select is(test.release_lost(array(select claim_token from mine where channel_id = 'known')), '0', 'once');

-- The holder of the lost claim cannot continue. The next claimer can.
select is(autopost.start_call('w', m.delivery_id, m.claim_token) ->> 'reason', 'stale') from mine m
	where m.channel_id = 'lost';
select is(test.claimed(100, 'run-2'), '{lost}');
select is(test.round('lost', test.sent('1')) ->> 'status', 'sent');

-- The same for post changes.
select test.tick('1 second');
select test.round('known', test.sent('2')), test.commit('started', test.sent('3')),
	test.round('others', test.sent('4'));
create function test.act(p_channel_id text) returns autopost.post_acts
language sql
as $$
select a from autopost.post_acts a where a.workspace_id = 'w' and a.channel_id = p_channel_id
$$;
select autopost.request_acts('w', 'pin', null, array(select d.delivery_id from autopost.deliveries d), null, null,
	'olga', 'said so', false);
select is((select count(*)::int from autopost.claim_acts('w', 'run-1', 100)), 4);
update autopost.post_acts set claimed_by = 'run-2' where channel_id = 'others';
select is(autopost.start_act('w', a.act_id, a.claim_token) ->> 'applied', 'true') from test.act('started') a;
select is(test.release_lost(array(select a.claim_token from autopost.post_acts a)), '0', 'known claims stay');
select is(test.release_lost(array[(test.act('known')).claim_token]), '1');
select is((select array_agg(a.channel_id order by a.channel_id) from autopost.post_acts a where a.status = 'sending'),
	'{known,others,started}',
	'known, started and foreign claims stay');
select is((test.act('lost')).status || ' ' || (test.act('lost')).attempt, 'retry 0', 'its attempt does not count');
select is((select array_agg(c.channel_id || ' ' || c.attempt) from autopost.claim_acts('w', 'run-2', 100) c),
	'{lost 1}', 'and it is due at once');
select is(autopost.commit_act('w', a.act_id, a.claim_token, '{"ok": true}') ->> 'status', 'done')
	from test.act('lost') a;
select is((select count(*)::int from autopost.events e where e.action = 'act_retry_scheduled'), 0, 'it was no failure');
select is((select count(*)::int from autopost.verify('w') v where v.violations > 0), 0);

select * from finish();
rollback;
