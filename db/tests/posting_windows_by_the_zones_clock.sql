-- Windows follow the clock of their zone, through gaps, overlaps and midnight.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(52);

create function test.opens(p_timezone text, p_window jsonb, p_at text, p_expected text, p_what text) returns text
language sql
as $$
select is(autopost.next_open(p_timezone, p_window, p_at::timestamptz), p_expected::timestamptz, p_what)
$$;

-- 2026-06-01 is a Monday.
select test.opens('UTC', '{"mon": [["09:00", "12:00"], ["14:00", "24:00"]]}', t.at, t.expected, t.what)
from (values
	('2026-06-01 08:59:59.999+00', '2026-06-01 09:00+00', 'before it opens'),
	('2026-06-01 09:00+00', '2026-06-01 09:00+00', 'open from the first instant'),
	('2026-06-01 11:59:59.999+00', '2026-06-01 11:59:59.999+00', 'open to the last'),
	('2026-06-01 12:00+00', '2026-06-01 14:00+00', 'the end is excluded'),
	('2026-06-01 23:59:59+00', '2026-06-01 23:59:59+00', '24:00 is the end of the day'),
	('2026-06-02 00:00+00', '2026-06-08 09:00+00', 'a day that is not named is closed')) t (at, expected, what);
select test.opens('UTC', '{}', '2026-06-01 09:00+00', 'infinity', 'no day: never');
select test.opens('UTC', '{"mon": []}', '2026-06-01 09:00+00', 'infinity', 'a day without spans: never');
select test.opens('UTC', '{"mon": [["00:00", "24:00"]], "tue": [["00:00", "24:00"]]}', '2026-06-02 00:00+00',
	'2026-06-02 00:00+00', 'two whole days have no seam');
select test.opens('UTC', '{"mon": [["11:00", "13:00"], ["09:00", "12:00"]]}', '2026-06-01 12:30+00',
	'2026-06-01 12:30+00', 'spans may overlap');
select test.opens('UTC', '{"mon": [["11:00", "13:00"], ["09:00", "12:00"]]}', '2026-06-01 01:00+00',
	'2026-06-01 09:00+00', 'in any order');
select test.opens('UTC', '{"mon": [["09:00", "12:00"]]}', '2026-06-01 12:00+00', '2026-06-08 09:00+00', 'a week later');
select test.opens('UTC', '{"mon": [["09:00", "12:00"]]}', 'infinity', 'infinity', 'never stays never');

-- Past midnight, over day and week.
select test.opens('UTC', '{"mon": [["22:00", "02:00"]]}', '2026-06-02 01:59+00', '2026-06-02 01:59+00',
	'past midnight');
select test.opens('UTC', '{"mon": [["22:00", "02:00"]]}', '2026-06-02 02:00+00', '2026-06-08 22:00+00',
	'and not beyond');
select test.opens('UTC', '{"mon": [["22:00", "02:00"]]}', '2026-06-01 01:00+00', '2026-06-01 22:00+00',
	'not the night before');
select test.opens('UTC', '{"sun": [["22:00", "02:00"]]}', '2026-06-01 01:00+00', '2026-06-01 01:00+00',
	'from Sunday into Monday');
select test.opens('UTC', '{"mon": [["18:00", "00:00"]]}', '2026-06-01 23:59+00', '2026-06-01 23:59+00',
	'00:00 as an end is midnight too');
select test.opens('UTC', '{"mon": [["18:00", "00:00"]]}', '2026-06-02 00:00+00', '2026-06-08 18:00+00', 'and excluded');
select test.opens('UTC', '{"mon": [["09:00", "09:00"]]}', '2026-06-02 08:59+00', '2026-06-02 08:59+00',
	'the same time twice: a day and a night');
select test.opens('UTC', '{"mon": [["09:00", "09:00"]]}', '2026-06-02 09:00+00', '2026-06-08 09:00+00',
	'and no longer');

-- Zones.
select test.opens('Europe/Moscow', '{"mon": [["09:00", "12:00"]]}', '2026-06-01 05:59+00', '2026-06-01 06:00+00',
	'Moscow is three hours ahead');
select test.opens('Europe/Moscow', '{"mon": [["00:00", "01:00"]]}', '2026-05-31 21:30+00', '2026-05-31 21:30+00',
	'its Monday begins on Sunday in UTC');
select test.opens('Europe/Moscow', '{"mon": [["09:00", "12:00"]]}', '2010-06-07 04:00+00', '2010-06-07 05:00+00',
	'and was four ahead in the summer of 2010');
select test.opens('Asia/Kolkata', '{"mon": [["09:00", "12:00"]]}', '2026-06-01 03:29+00', '2026-06-01 03:30+00',
	'Kolkata is five and a half');
select test.opens('Asia/Kolkata', '{"mon": [["09:00", "12:00"]]}', '2026-06-01 06:30+00', '2026-06-08 03:30+00',
	'at its end as well');
select test.opens('Pacific/Apia', '{"mon": [["09:00", "12:00"]]}', '2026-05-31 19:00+00', '2026-05-31 20:00+00',
	'Apia is thirteen ahead');

-- The gap of spring: on Sunday 2026-03-08 New York goes from 02:00 EST (07:00 UTC) to 03:00 EDT.
select test.opens('America/New_York', t.w::jsonb, t.at, t.expected, t.what)
from (values
	('{"sun": [["02:30", "05:00"]]}', '2026-03-08 06:00+00', '2026-03-08 07:00+00',
		'an opening inside the gap is its end'),
	('{"sun": [["02:00", "05:00"]]}', '2026-03-08 06:00+00', '2026-03-08 07:00+00', 'at its first instant too'),
	('{"sun": [["03:00", "05:00"]]}', '2026-03-08 06:00+00', '2026-03-08 07:00+00', 'and at the first one after'),
	('{"sun": [["01:00", "02:30"]]}', '2026-03-08 06:59:59+00', '2026-03-08 06:59:59+00', 'open up to the gap'),
	('{"sun": [["01:00", "02:30"]]}', '2026-03-08 07:00+00', '2026-03-15 05:00+00', 'an end inside the gap is its end'),
	('{"sun": [["02:15", "02:45"]]}', '2026-03-08 06:00+00', '2026-03-15 06:15+00', 'a span inside the gap is empty'),
	('{"sun": [["01:00", "04:00"]]}', '2026-03-08 07:59+00', '2026-03-08 07:59+00',
		'a span around it is an hour shorter'),
	('{"sun": [["01:00", "04:00"]]}', '2026-03-08 08:00+00', '2026-03-15 05:00+00', 'and ends by the new time'),
	('{"sat": [["22:00", "03:30"]]}', '2026-03-08 07:29+00', '2026-03-08 07:29+00', 'a night with a gap'),
	('{"sun": [["09:00", "10:00"]]}', '2026-03-02 00:00+00', '2026-03-08 13:00+00', 'looked at from a week before')) t (
		w, at, expected, what);

-- The overlap of autumn: on Sunday 2026-11-01 New York goes from 02:00 EDT (06:00 UTC) back to 01:00 EST.
select test.opens('America/New_York', t.w::jsonb, t.at, t.expected, t.what)
from (values
	('{"sun": [["01:30", "01:45"]]}', '2026-11-01 05:00+00', '2026-11-01 05:30+00',
		'the first time it is half past one'),
	('{"sun": [["01:30", "01:45"]]}', '2026-11-01 05:45+00', '2026-11-08 06:30+00', 'and not a second time'),
	('{"sun": [["01:30", "01:45"]]}', '2026-11-01 06:35+00', '2026-11-08 06:30+00', 'nor in the midst of it'),
	('{"sun": [["00:00", "01:30"]]}', '2026-11-01 05:30+00', '2026-11-08 05:00+00',
		'an end is taken at the first as well'),
	('{"sun": [["01:30", "03:00"]]}', '2026-11-01 07:59+00', '2026-11-01 07:59+00',
		'a span around it is an hour longer'),
	('{"sun": [["01:30", "03:00"]]}', '2026-11-01 08:00+00', '2026-11-08 06:30+00', 'and ends by the new time'),
	('{"sun": [["02:00", "03:00"]]}', '2026-11-01 06:00+00', '2026-11-01 07:00+00', 'what is not ambiguous')) t (w, at,
		expected, what);

-- Whole days, odd lengths, and clocks put back over midnight.
select test.opens('Pacific/Apia', '{"fri": [["09:00", "12:00"]], "sat": [["09:00", "12:00"]]}', '2011-12-30 09:00+00',
	'2011-12-30 19:00+00', 'Apia left out Friday 2011-12-30: Saturday is next');
select test.opens('Pacific/Apia', '{"thu": [["22:00", "24:00"]]}', '2011-12-30 09:59+00', '2011-12-30 09:59+00',
	'its Thursday ends');
select test.opens('Pacific/Apia', '{"thu": [["22:00", "24:00"]]}', '2011-12-30 10:00+00', '2012-01-05 08:00+00',
	'where Saturday begins');
select test.opens('Australia/Lord_Howe', '{"sun": [["02:15", "04:00"]]}', '2026-10-03 15:00+00', '2026-10-03 15:30+00',
	'a gap of half an hour');
select test.opens('Australia/Lord_Howe', '{"sun": [["01:45", "01:50"]]}', '2026-04-04 14:00+00', '2026-04-04 14:45+00',
	'an overlap of half an hour');
select test.opens('America/St_Johns', '{"sun": [["00:00", "03:00"]]}', '2006-10-29 03:00+00', '2006-10-29 03:00+00',
	'Sunday has begun, is put back to Saturday');
select test.opens('America/St_Johns', '{"sat": [["22:00", "24:00"]]}', '2006-10-29 03:00+00', '2006-11-05 01:30+00',
	'and Saturday does not come again');
select is(autopost.zoned_instant('America/New_York', '2026-07-01 12:00'), '2026-07-01 16:00+00', 'an ordinary noon');

select * from finish();
rollback;
