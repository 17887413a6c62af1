-- A driver may omit start_call or record_series_progress. The invariants of verify still hold.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(18);

select test.channel('a');
select test.channel('b', p_max_parallel => 2);
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);

create function test.broken() returns jsonb
language sql
as $$
select coalesce(jsonb_agg(to_jsonb(v)), '[]') from autopost.verify('w') v where v.violations > 0
$$;

-- Sent without a start.
select test.say('x');
create temp table c on commit drop as select * from test.claim();
select test.tick('2 seconds');
select is((select jsonb_agg(r ->> 'status') from jsonb_array_elements(autopost.commit_outcome_batch('w', (
	select jsonb_agg(jsonb_build_object('delivery_id', c.delivery_id, 'claim_token', c.claim_token, 'outcome',
		test.sent(c.channel_id))) from c))) r), '["sent", "sent"]');
select is((select jsonb_agg(jsonb_build_array(e.attempt, e.meta -> 'told',
	e.ts = autopost.now_ts() - interval '2 seconds')) from autopost.events e
	where e.action = 'send_attempt'), '[[1, "late", true], [1, "late", true]]',
		'the calls are on record, as begun with their claims');
select is((test.row('a')).last_call_at, autopost.now_ts() - interval '2 seconds');
select is(test.broken(), '[]');

-- A started one is recorded once.
select test.say('y');
select test.round('a', test.sent('2'));
select is(test.count_events('send_attempt', 'a'), 2);
select test.commit('b', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(test.count_events('send_attempt', 'b'), 2, 'who does not know what came of a call has made one');
select test.tick('1 hour');
select test.claimed();
select test.commit('b', test.failure('TRANSIENT', 'delivery', 'no_credential'));
select is(test.count_events('send_attempt', 'b'), 2, 'a definite failure may come before a call');
select test.tick('1 hour');
select test.round('b', test.sent('3'));
select is(test.broken(), '[]');

-- A series that reports only its end.
select test.tick('1 minute');
update autopost.channels set enabled = channel_id = 'a';
select test.post(jsonb_build_object('text', repeat('long ', 300), 'media',
	jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))));
select test.claimed();
select test.start('a');
select is(autopost.mark_sent('w', d.delivery_id, d.claim_token, '7', null, '{}'),
	'{"applied": false, "reason": "steps_missing", "steps": ["text"]}')
from test.row('a') d;
select is((test.row('a')).status, 'sending', 'the claim goes on');
select is((select jsonb_build_array(e.meta -> 'reason', e.meta -> 'steps') from autopost.events e
	where e.action = 'stale_commit'), '["steps_missing", ["text"]]', 'and the event has the reason');
select is(autopost.record_series_progress('w', d.delivery_id, d.claim_token,
	'{"step": "text", "ids": ["6"]}') ->> 'applied', 'true') from test.row('a') d;
select is(autopost.mark_sent('w', d.delivery_id, d.claim_token, '7', null, '{}') ->> 'status', 'sent')
	from test.row('a') d;
select is(test.broken(), '[]');

-- All steps reported with the commit.
select test.tick('1 minute');
select test.post(jsonb_build_object('text', repeat('longer ', 300), 'media',
	jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))));
select test.claimed();
select test.start('a');
select is(test.commit('a', test.sent('8') || '{"raw": {"steps": {"media-1": ["9"]}}}') -> 'steps', '["text"]',
	'the last step acknowledges none before it');
select is(test.commit('a', test.sent('8') || '{"raw": {"steps": {"text": ["8"]}}}') ->> 'status', 'sent');
select is((test.row('a')).render_meta -> 'series_progress' -> 'provider_message_ids', '["8", "9"]',
	'what the refused commit acknowledged was kept');
select is(test.broken(), '[]');

select * from finish();
rollback;
