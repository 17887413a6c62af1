-- A delivery that waits gets another time. Its gate follows, and it goes once, at the new time.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(46);

create function test.move(p_at timestamptz, p_channel_id text default 'a',
	p_dry_run boolean default false) returns jsonb
language sql as $$
select autopost.reschedule('w', array[(test.row(p_channel_id)).delivery_id], p_at, 'olga', 'the fair is later',
	p_dry_run)
$$;
create function test.shift(p_seconds int, p_channel_id text default 'a') returns jsonb
language sql as $$
select autopost.shift_deliveries('w', array[(test.row(p_channel_id)).delivery_id], p_seconds, 'olga', 'later', false)
$$;
create function test.why_not(p_answer jsonb) returns text
language sql as $$ select p_answer #>> '{results,0,reason}' $$;

select test.channel('a'), test.channel('b'), test.channel('c');
select test.post('{"text": "fair", "scheduled_for": "2026-06-01T15:00:00Z", "routing": {"include_channels": ["a"]}}');

-- Later and earlier.
select is(test.move('2026-06-01 18:00:00+00', p_dry_run => true) -> 'moved', '1', 'a dry run answers');
select is((test.row('a')).due_at, '2026-06-01 15:00:00+00', 'and changes nothing');
select is(test.count_events('rescheduled'), 0);
select is(test.move('2026-06-01 18:00:00+00') - 'results',
	'{"applied": true, "dry_run": false, "moved": 1, "refused": 0}');
select is((test.row('a')).due_at, '2026-06-01 18:00:00+00');
select test.set_clock('2026-06-01 15:00:01+00');
select is(test.claimed(), '{}', 'nothing goes at the old time');
select is((test.move('2026-06-01 16:00:00+00') #> '{results,0}') - 'delivery_id', jsonb_build_object('channel_id',
	'a', 'status', 'moved',
	'before', '2026-06-01 18:00:00+00'::timestamptz, 'scheduled_for', '2026-06-01 16:00:00+00'::timestamptz, 'opens_at',
	'2026-06-01 16:00:00+00'::timestamptz));
select ok((test.gate('a')).ready_at <= '2026-06-01 16:00:00+00', 'the gate opens for the earlier time');
select test.set_clock('2026-06-01 15:59:59+00');
select is(test.claimed(), '{}');
select test.set_clock('2026-06-01 16:00:00+00');
select is(test.claimed(), '{a}', 'it goes at the new time');

-- What has begun stays.
select is(test.why_not(test.move('2026-06-01 18:00:00+00')), 'begun');
select test.start('a');
select is(test.why_not(test.move('2026-06-01 18:00:00+00')), 'begun');
select test.commit('a', test.sent('1'));
select is(test.why_not(test.move('2026-06-01 18:00:00+00')), 'sent');
select is(autopost.reschedule('w', array[gen_random_uuid()], '2026-06-01 18:00:00+00', 'o', 'r',
	false) #>> '{results,0,message}',
	'the workspace does not have this delivery: run autopost deliveries list');
select is(test.count_events('rescheduled'), 2, 'a refusal has no event');
select is((select e.meta - 'trace_id' from autopost.events e where e.action = 'rescheduled' order by e.ts desc limit 1),
	jsonb_build_object('operator', 'olga', 'reason', 'the fair is later', 'manual', true, 'scheduled_for',
	'2026-06-01 16:00:00+00'::timestamptz, 'before', '2026-06-01 18:00:00+00'::timestamptz));
select is((select array_agg(a.action || ' ' || a.operator) from autopost.admin_audit_log a),
	'{"reschedule olga","reschedule olga"}');
select is((select h.value ->> 'sentence' from jsonb_array_elements(autopost.why('w',
	(test.row('a')).delivery_id) -> 'chain') h
	where h.value ->> 'action' = 'rescheduled' limit 1),
	'moved from 2026-06-01T15:00:00Z to 2026-06-01T18:00:00Z by olga: the fair is later');

-- Bounds of the time.
select throws_ok($$select test.move('2026-06-01 15:00:00+00')$$, 'AP001',
	'argument at: must be in the future, got 2026-06-01T15:00:00Z');
select throws_ok($$select test.move('2226-06-01 15:00:00+00')$$, 'AP001',
	'argument at: must be within 100 years, got 2226-06-01T15:00:00Z');
select throws_ok($$select test.move('infinity')$$, 'AP001', 'argument at: must be within 100 years, got infinity');
select is(autopost.payload_errors('{"text": "x", "scheduled_for": "2226-06-01T15:00:00Z"}') #>> '{0,reason}',
	'must be within 100 years',
	'as for a new post');

-- By a difference.
select test.post('{"text": "shifted", "scheduled_for": "2026-06-01T20:00:00Z", "routing": {"include_channels": ["b"]}}');
select is(test.shift(7200, 'b') #>> '{results,0,status}', 'moved');
select is((test.row('b')).due_at, '2026-06-01 22:00:00+00');
select is(test.shift(-3600, 'b') #>> '{results,0,status}', 'moved');
select is((test.row('b')).due_at, '2026-06-01 21:00:00+00');
select is(test.why_not(test.shift(-86400, 'b')), 'in_the_past');
select is((test.row('b')).due_at, '2026-06-01 21:00:00+00', 'a refusal changes nothing');
select is(test.why_not(test.move('2026-06-01 21:00:00+00', 'b')), 'unchanged');
select test.move('2096-06-01 21:00:00+00', 'b');
select is(test.why_not(test.shift(2000000000, 'b')), 'too_late');

-- A retry waits for its failure as well.
select test.post('{"text": "retried", "routing": {"include_channels": ["c"]}}');
select test.tick('1 second');
select test.round('c', test.failure('TRANSIENT', 'delivery', 'http_500', '{"retry_after_ms": 7200000}'));
select is(test.move(autopost.now_ts() + interval '1 hour', 'c') #>> '{results,0,status}', 'moved');
select ok((test.row('c')).due_at >= autopost.now_ts() + interval '2 hours', 'the wait of the platform is a floor');
select is(test.move(autopost.now_ts() + interval '1 day', 'c') #>> '{results,0,status}', 'moved');
select is((test.row('c')).due_at, autopost.now_ts() + interval '1 day');
select autopost.skip_deliveries('w', array[(test.row('c')).delivery_id], 'o', 'r', false);
select is((select array_agg(v.invariant) from autopost.verify('w') v where v.violations > 0), null,
	'verify accepts a call before the move');

-- A post, and its removal.
select test.post(jsonb_build_object('text', 'removed', 'scheduled_for', '2026-06-02T10:00:00Z', 'remove_at',
	'2026-06-02T20:00:00Z'));
select is(autopost.reschedule_post('w', (test.row('a')).message_id, '{"seconds": 3600}', 'o', 'r', false) - 'results',
	'{"applied": true, "dry_run": false, "moved": 3, "refused": 0, "more": false}');
select is((select array_agg(distinct d.due_at) from autopost.deliveries d
	where d.message_id = (test.row('a')).message_id),
	array['2026-06-02 11:00:00+00'::timestamptz]);
select is(test.why_not(test.move('2026-06-02 20:00:00+00')), 'after_removal');
select is(autopost.reschedule_post('w', gen_random_uuid(), '{"seconds": 3600}', 'o', 'r', false) ->> 'reason',
	'unknown_message');
select throws_like($$select autopost.reschedule_post('w', gen_random_uuid(), '{"at": "2026-06-02 10:00"}', 'o', 'r',
	false)$$,
	'argument at: must be a time with an offset, got 2026-06-02 10:00');
select throws_like($$select autopost.reschedule_post('w', gen_random_uuid(),
	'{"at": "2026-06-02T10:00:00Z", "seconds": 1}', 'o', 'r', false)$$,
	'argument to: must have one of at, seconds and slot');
select throws_like($$select autopost.reschedule_post('w', gen_random_uuid(), '{"slot": "last"}', 'o', 'r', false)$$,
	'argument slot: must be next_free, got "last"');
select throws_like($$select autopost.shift_deliveries('w', array[gen_random_uuid()], 0, 'o', 'r', false)$$,
	'argument seconds: must not be 0 and at most 100 years, got 0');

-- Its webhook.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'sign',
	'webhook', 'env:KEY');
select autopost.put_webhook('w', 'crm', '{"url": "https://crm.example/", "signing_ref": "sign"}', 'o', 'r', false);
select test.tick('1 minute');
select test.shift(60);
select is(autopost.result_type(e), 'delivery.rescheduled') from autopost.events e where e.action = 'rescheduled'
	order by e.ts desc limit 1;
select is(autopost.result_data(e, 'delivery.rescheduled', null) ->> 'scheduled_for', '2026-06-02T11:01:00.000000Z')
from autopost.events e where e.action = 'rescheduled' order by e.ts desc limit 1;

select is((select array_agg(v.invariant || v.sample::text) from autopost.verify('w') v where v.violations > 0), null);
select * from finish();
rollback;
