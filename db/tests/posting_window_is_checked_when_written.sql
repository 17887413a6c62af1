-- An invalid window or time zone is refused on write, with column, reason and remedy.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(31);

select test.channel('a');

create function test.write(p_timezone text, p_mode text, p_window text) returns text
language plpgsql
as $$
-- The column that was refused, or 'written'.
begin
	update autopost.channels set timezone = p_timezone, window_mode = p_mode, posting_window = p_window::jsonb
		where channel_id = 'a';
	return 'written';
exception when sqlstate 'AP001' then
	return substring(sqlerrm from 'argument (\w+): .');
end
$$;

select is(test.write(t.zone, 'immediate', null), t.expected, coalesce(t.zone, 'no zone'))
from (values
	(null, 'written'), ('UTC', 'written'), ('Europe/Moscow', 'written'), ('America/Argentina/Buenos_Aires', 'written'),
		('Africa/Porto-Novo', 'written'),
	('Etc/GMT-3', 'written'), ('Mars/Olympus', 'timezone'), ('', 'timezone'), ('MSK', 'timezone'), ('CET', 'timezone'),
		('UTC+3', 'timezone'),
	('Europe/Moscow+3', 'timezone'), ('+03:00', 'timezone')) t (zone, expected);
select is(test.write(null, t.mode, t.w), t.expected, t.mode || ' ' || coalesce(t.w, 'without a window'))
from (values
	('immediate', null, 'written'),
	('windowed', null, 'posting_window'),
	('windowed', '{}', 'written'),
	('windowed', '{"mon": [["09:00", "12:00"], ["11:00", "24:00"]], "sun": []}', 'written'),
	('windowed', '{"mon": [["22:00", "06:00"]]}', 'written'),
	('windowed', 'null', 'posting_window'),
	('windowed', '[]', 'posting_window'),
	('windowed', '{"monday": []}', 'posting_window'),
	('windowed', '{"mon": ["09:00", "12:00"]}', 'posting_window'),
	('windowed', '{"mon": [["09:00"]]}', 'posting_window'),
	('windowed', '{"mon": [["09:00", null]]}', 'posting_window'),
	('windowed', '{"mon": [["9:00", "12:00"]]}', 'posting_window'),
	('windowed', '{"mon": [["24:00", "12:00"]]}', 'posting_window'),
	('windowed', '{"mon": [["09:00", "24:01"]]}', 'posting_window'),
	('windowed', '{"mon": [["09:60", "12:00"]]}', 'posting_window'),
	('immediate', '{"mon": {}}', 'posting_window')) t (mode, w, expected);
select throws_ok($$
	insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, timezone)
	values ('w', 'b', 'telegram', '@b', 'bot', 'bot', 'Nowhere/At_All')
$$, 'AP001', 'argument timezone: unknown time zone ''Nowhere/At_All''', 'a new channel as well');
select lives_ok($$update autopost.channels set title = 'New'$$, 'what has no window is not looked at');

select * from finish();
rollback;
