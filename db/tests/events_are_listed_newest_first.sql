-- Events are listed newest first, with filters by object and by an instant with an offset.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(7);

select test.channel('a'), test.channel('b');
select test.say('one');
select test.tick('1 hour');
select test.say('two');
create function test.listed(p_filter jsonb, p_limit int default 100) returns text
language sql
as $$
-- When the events that fit happened.
select string_agg(to_char(e.ts at time zone 'UTC', 'HH24:MI'), ' ' order by e.n)
from (select l.ts, row_number() over () as n from autopost.list_events('w', p_filter, p_limit) l) e
$$;

select is(test.listed('{"action": "enqueue"}'), '13:00 12:00');
select is(test.listed('{"action": "enqueue"}', 1), '13:00', 'at most so many, the newest');
select is(test.listed('{"action": "enqueue", "since": "2026-06-01T16:00:00+03:00"}'), '13:00',
	'that instant is included');
select is(test.listed('{"action": "enqueue", "since": "2026-06-01T13:00:00.000001Z"}'), null);
select is(test.listed('{"channel_id": "b", "action": "enqueue"}'), null, 'an enqueue belongs to no channel');
select throws_ok($$select autopost.list_events('w', '{"since": "2026-06-01T13:00:00"}', 1)$$, 'AP001', null,
	'an instant without its offset');
select throws_ok($$select autopost.list_events('w', '{"since": "yesterday"}', 1)$$, 'AP001', null, 'no instant');

rollback;
