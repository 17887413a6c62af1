-- With strict events no event names a missing row, and no named row is removed. Without, an event may outlive its rows.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);
select test.channel('a');
select test.say('one');
select test.round('a', test.sent('1'));
create function test.event(p_delivery_id uuid, p_message_id uuid, p_channel_id text, p_ts timestamptz) returns text
language sql
as $$
select format('insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, result)
	values (''w'', gen_random_uuid(), %L, %L, %L, %L, ''sent'', ''ok'')', p_delivery_id, p_message_id, p_channel_id, p_ts)
$$;

select ok(autopost.events_are_strict(), 'tests run with strict events');
select is(autopost.set_event_strictness(true), '{"applied": false, "strict": true, "reason": "unchanged"}');
select throws_ok(test.event(gen_random_uuid(), null, null, autopost.now_ts()), '23503', null, 'a delivery');
select throws_ok(test.event(null, gen_random_uuid(), null, autopost.now_ts()), '23503', null, 'a message');
select throws_ok(test.event(null, null, 'b', autopost.now_ts()), '23503', null, 'a channel');
select throws_ok(test.event(null, null, 'b', '1999-01-01'), '23503', null, 'in the default partition');
select test.tick('30 days');
select autopost.ensure_event_partitions();
select throws_ok(test.event(null, null, 'b', autopost.now_ts()), '23503', null, 'in a later partition');
select throws_ok('delete from autopost.deliveries', '23503', null);
select test.tick('-30 days');

-- An event after the time of its delivery keeps the row, but not while events are not strict.
select lives_ok(test.event((test.row('a')).delivery_id, (test.row('a')).message_id, 'a',
	autopost.now_ts() + interval '95 days'));
delete from autopost.events e where e.ts <= autopost.now_ts();
select test.tick('92 days');
select is(autopost.purge_deliveries('w', null) -> 'purged', '0');
select is(autopost.set_event_strictness(false), '{"applied": true, "strict": false}');
select is(autopost.purge_deliveries('w', null) -> 'purged', '1');
select is(autopost.set_event_strictness(true) - 'detail', '{"applied": false, "strict": false, "reason": "orphans"}');
delete from autopost.events e where e.delivery_id is not null;
select is(autopost.set_event_strictness(true), '{"applied": true, "strict": true}');

-- The events of a removed channel keep its id.
update autopost.channels set enabled = false;
select autopost.emit_note('w', 'channel_disabled', 'ok', 'a', null, null, null);
select is(autopost.remove_channel('w', 'a', 'o', 'r', false) -> 'applied', 'true');
select is((select array_agg(e.meta ->> 'removed_channel_id') from autopost.events e where e.action = 'channel_disabled'), '{a}');

select * from finish();
rollback;
