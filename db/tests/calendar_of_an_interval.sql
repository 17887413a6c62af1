-- The calendar shows what was sent and what waits in an interval, for one channel or all.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

create function test.calendar(p_from text, p_until text, p_channel_id text default null) returns text[]
language sql as $$
select array(select concat_ws(' ', to_char((i.value ->> 'at')::timestamptz at time zone 'UTC', 'DD HH24:MI'),
	i.value ->> 'kind',
	m.payload ->> 'text', i.value ->> 'channels')
from jsonb_array_elements(autopost.calendar('w', p_from::timestamptz, p_until::timestamptz,
	p_channel_id) -> 'items') with ordinality i
join autopost.messages m on m.message_id = (i.value ->> 'message_id')::uuid order by i.ordinality)
$$;

select test.channel('a'), test.channel('b');
select is(autopost.calendar('w', '2026-06-01', '2026-07-01', null), '{"items": [], "more": false}');
select test.say('now');
select test.tick('1 second');
select test.claimed();
select test.start('a'), test.start('b');
select test.commit('a', test.sent('1'));
select test.tick('1 minute');
select test.commit('b', test.sent('2'));
select test.post('{"text": "later", "scheduled_for": "2026-06-10T10:00:00Z"}');
select test.post('{"text": "apart", "scheduled_for": "2026-06-12T10:00:00Z"}');
select autopost.reschedule('w', array(select d.delivery_id from autopost.deliveries d where d.channel_id = 'a'
	and d.rendered_text = 'apart'),
	'2026-06-11 10:00:00+00', 'o', 'r', false);
select test.post('{"text": "next month", "scheduled_for": "2026-07-01T00:00:00Z"}');

select is(test.calendar('2026-06-01', '2026-07-01'),
	'{"01 12:00 sent now 2","10 10:00 queued later 2","11 10:00 queued apart 1","12 10:00 queued apart 1"}');
select is(test.calendar('2026-06-01', '2026-07-01', 'a'),
	'{"01 12:00 sent now 1","10 10:00 queued later 1","11 10:00 queued apart 1"}');
select is(test.calendar('2026-06-10 10:00', '2026-06-11 10:00'), '{"10 10:00 queued later 2"}',
	'from is in it, until is not');
select is((autopost.calendar('w', '2026-06-01', '2026-06-02', null) #> '{items,0}') - 'message_id',
	jsonb_build_object('at', '2026-06-01 12:00:01+00'::timestamptz, 'kind', 'sent', 'recurrence_id', null,
		'channels', 2));
select test.set_clock('2026-06-10 10:00:00+00');
select test.claimed();
select is(test.calendar('2026-06-10', '2026-06-11'), '{"10 10:00 queued later 2"}', 'in flight it is still there');
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d where d.channel_id = 'a'
	and d.status = 'sending';
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.failure('TRANSIENT', 'delivery', 'http_500',
	'{"retry_after_ms": 86400000}'))
from autopost.deliveries d where d.channel_id = 'a' and d.status = 'sending';
select matches((test.calendar('2026-06-11', '2026-06-12'))[2], '^11 .* queued later 1$',
	'a retry is there when it is due');
select autopost.skip_post('w', (select m.message_id from autopost.messages m where m.payload ->> 'text' = 'apart'),
	'o', 'r', false);
select is(test.calendar('2026-06-12', '2026-06-13'), '{}', 'what was skipped is not');

select throws_like($$select autopost.calendar('w', '2026-06-01', '2026-06-01', null)$$,
	'argument until: must be after from%');
select throws_like($$select autopost.calendar('w', '2026-06-01', '2026-12-01', null)$$,
	'argument until: must be after from%');
select throws_like($$select autopost.calendar('w', '-infinity', '2026-12-01', null)$$, 'argument from: is missing');
select throws_like($$select autopost.calendar('w', '2026-06-01', '2026-07-01', 'nope')$$,
	'argument channel_id: must be a channel of the workspace, got nope');
select is((select array_agg(v.invariant || v.sample::text) from autopost.verify('w') v where v.violations > 0), null);
select * from finish();
rollback;
