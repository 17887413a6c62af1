-- The calendar by day counts all items of a day of a time zone and shows the first ones with their text.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

create function test.days(p_shown int, p_zone text default 'UTC', p_channel_id text default null) returns text[]
language sql as $$
select array(select concat_ws(' ', d.value ->> 'day', d.value ->> 'sent', d.value ->> 'queued', d.value ->> 'expected',
	(select string_agg(concat(i.value ->> 'excerpt', '/', i.value ->> 'channels'), ',' order by i.ordinality)
		from jsonb_array_elements(d.value -> 'items') with ordinality i))
from jsonb_array_elements(autopost.calendar_days('w', '2026-06-01', '2026-07-01', p_zone, p_channel_id, p_shown)
	-> 'days') with ordinality d order by d.ordinality)
$$;

select test.channel('a'), test.channel('b');
select is(autopost.calendar_days('w', '2026-06-01', '2026-07-01', 'UTC', null, 3), '{"days": [], "closed": [], "more": false}');
select test.post('{"text": "late", "scheduled_for": "2026-06-10T22:30:00Z"}');
select test.post('{"text": "first", "scheduled_for": "2026-06-10T08:00:00Z"}');
select test.post('{"text": "second", "scheduled_for": "2026-06-10T09:00:00Z"}');
select is(test.days(3), '{"2026-06-10 0 3 0 first/2,second/2,late/2"}');
select is(test.days(1), '{"2026-06-10 0 3 0 first/2"}', 'all are counted');
select is(test.days(0), '{"2026-06-10 0 3 0"}');
select is(test.days(3, 'Europe/Moscow'), '{"2026-06-10 0 2 0 first/2,second/2","2026-06-11 0 1 0 late/2"}',
	'a day is that of the zone');
select is(test.days(3, 'UTC', 'a'), '{"2026-06-10 0 3 0 first/1,second/1,late/1"}');

update autopost.channels set window_mode = 'windowed', timezone = 'UTC',
	posting_window = '{"wed": [["09:00", "12:30"]]}' where channel_id in ('a', 'b');
select is(array(select to_char(h.value::timestamptz at time zone 'UTC', 'HH24') from jsonb_array_elements_text(
	autopost.calendar_days('w', '2026-06-10 08:00+00', '2026-06-10 14:00+00', 'UTC', null, 0) -> 'closed')
	h), '{08,13}', 'an hour that is open in part is open');
update autopost.channels set window_mode = 'immediate' where channel_id = 'b';
select is(autopost.calendar_days('w', '2026-06-10 08:00+00', '2026-06-10 14:00+00', 'UTC', null, 0) -> 'closed', '[]',
	'half of the channels are not most');

select throws_like($$select autopost.calendar_days('w', '2026-06-01', '2026-07-01', 'Mars/One', null, 3)$$,
	'argument zone: must be a time zone%');
select throws_like($$select autopost.calendar_days('w', '2026-06-01', '2026-07-01', 'UTC', null, 201)$$,
	'argument shown: must be 0 to 200%');
-- A calendar reads a bounded number of deliveries, and says so.
create or replace function autopost.calendar_bound() returns int
language sql immutable parallel safe
as $$ select 4 $$;
select is(test.days(3), '{"2026-06-10 0 3 0 first/2,second/1,late/1"}', 'the posts of the first channel are complete');
select is(autopost.calendar_days('w', '2026-06-01', '2026-07-01', 'UTC', null, 3) -> 'more', 'true');
select is(autopost.calendar('w', '2026-06-01', '2026-07-01', null) -> 'more', 'true');

select * from finish();
rollback;
