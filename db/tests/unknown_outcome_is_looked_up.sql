-- The lookup after an unknown outcome starts when the platform can show the post. It gets the time of the call.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

select test.channel('x', p_platform => 'x');
select test.channel('tg');
select test.say('Did you get this?');
create temp table began on commit drop as select autopost.now_ts() as at;

-- A lost answer: X shows a post a minute after it at the latest, and is asked then. Telegram cannot be asked.
create function test.lost(p_channel text) returns jsonb
language sql
as $$
select test.commit(p_channel, test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'))
$$;
select test.claimed();
select test.start('x'), test.start('tg');
select test.tick('5 seconds');
select is(test.lost('x') ->> 'status', 'retry');
select is((test.row('x')).next_retry_at, autopost.now_ts() + interval '1 minute', 'not before the platform shows it');
select is(test.lost('tg') ->> 'status', 'retry');
select cmp_ok((test.row('tg')).next_retry_at, '<', autopost.now_ts() + interval '5 seconds', 'nothing to wait for');
update autopost.platforms set settle_seconds = 600 where platform = 'telegram';
select test.post('{"text": "again", "routing": {"include_channels": ["tg"]}}');
select test.tick('1 second');
select test.claimed();
select test.start('tg');
select test.lost('tg');
select cmp_ok((test.row('tg')).next_retry_at, '>=', autopost.now_ts() + interval '10 minutes', 'the time is a row');

-- The lookup concerns the call with the unknown outcome, also after later certain failures.
select test.tick('1 minute');
select is((select c.last_call_at from test.claim() c where c.channel_id = 'x'), (select at from began));
select test.start('x');
select is(test.commit('x', test.failure('TRANSIENT', 'delivery', 'x_conflict')) ->> 'status', 'retry');
select is((test.row('x')).last_call_at, (select at from began), 'a call that was refused is in no doubt');
select test.tick('1 hour');
select is((select c.unknown_outcomes from test.claim() c where c.channel_id = 'x'), 1);
select test.start('x');

-- Found: sent, and the history says how.
select is(test.commit('x', '{"ok": true, "provider_message_id": "1990000000000000001", "raw": {"ids": ["1990000000000000001"], "reconciled": true}}') ->> 'status', 'sent');
select is((test.row('x')).provider_message_id, '1990000000000000001');
select is((select e.meta #> '{raw,raw,reconciled}' from autopost.events e where e.action = 'sent'), 'true');
select is((select e.value ->> 'sentence'
	from jsonb_array_elements(autopost.why('w', (test.row('x')).delivery_id) -> 'chain') e
	where e.value ->> 'action' = 'sent'),
	'found at the platform as 1990000000000000001, so not sent again');

select * from finish();
rollback;
