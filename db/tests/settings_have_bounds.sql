-- A setting rejects values that would stop the engine, from every writer.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(21);

create function test.written(p_key text, p_value jsonb) returns text
language plpgsql
as $$
begin
	update autopost.settings set value = p_value where key = p_key;
	return 'written';
exception when sqlstate 'AP001' then
	return sqlerrm;
end
$$;

select is(test.written('sending_lease_seconds', '1'),
	'argument value: sending_lease_seconds must be a whole number of seconds from 2 to 86400, got 1',
	'key, unit, bounds and what it was');
select is(test.written('sending_lease_seconds', '2'), 'written', 'both bounds are in');
select is(test.written('sending_lease_seconds', '86400'), 'written');
select is(test.written('webhook_poll_ms', '-1'),
	'argument value: webhook_poll_ms must be a whole number of milliseconds from 0 to 1000000000, got -1');
select is(test.written('max_attempts', '0'),
	'argument value: max_attempts must be a whole number from 1 to 1000, got 0', 'what has no unit');
select is(test.written('max_media_bytes_image', '0'),
	'argument value: max_media_bytes_image must be a whole number of bytes from 1 to 1099511627776, got 0');
select alike(test.written('auth_refresh_lease_seconds', '29'), '%from 30 to%', 'longer than a renewal takes');
select alike(test.written('lease_margin_seconds', '1000'), '%from 1 to 15%',
	'no longer than what ADAPTER_TIMEOUT_MS leaves');
select alike(test.written('claimed_lease_seconds', '0'), '%from 1 to%');
select alike(test.written('breaker_channels', '0'), '%from 1 to%');
select alike(test.written('disable_after_permanent_streak', '0'), '%from 1 to%');
select alike(test.written('max_attempts', '"abc"'), '%whole number%"abc"');
select alike(test.written('max_attempts', '"5"'), '%whole number%', 'not a text that looks like one');
select alike(test.written('max_attempts', '2.5'), '%whole number%');
select alike(test.written('max_attempts', 'null'), '%whole number%');
select is(test.written('alert_dead_threshold', '0'), 'written', 'never');
select is(test.written('operator_workspace', '7'), 'argument value: operator_workspace must be a string, got 7');
select is(test.written('operator_workspace', '"w"'), 'written');
select throws_like($$select test.set('lease_margin_seconds', '16')$$,
	'argument value: lease_margin_seconds must be a whole number of seconds from 1 to 15, got 16',
	'functions say the same');

select is((select array_agg(key order by key) from autopost.settings
	where default_value is null or jsonb_typeof(default_value) = 'number' and (least is null or most is null)),
	null, 'each has its default, and each number its bounds');
select is((select array_agg(key order by key) from autopost.settings
	where jsonb_typeof(default_value) = 'number' and default_value::numeric not between least and most),
	null, 'and is by default inside them');

rollback;
