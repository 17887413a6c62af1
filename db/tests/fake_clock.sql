-- Tests set the clock of the engine. Include this file right after begin: the replacement ends with
-- the transaction. TestContracts installs it once per database; then a contract only sets the clock.
--   select test.set_clock('2026-06-01 12:00:00+00');
--   select test.tick('10 minutes');
create schema test;
grant usage on schema test to public;

create function test.set_clock(p_now timestamptz) returns void
language sql
as $$
select set_config('test.now', p_now::text, true)
$$;

create function test.tick(p_by interval) returns void
language sql
as $$
select test.set_clock(autopost.now_ts() + p_by)
$$;

create or replace function autopost.now_ts() returns timestamptz
language sql volatile parallel safe
as $$
select coalesce(nullif(current_setting('test.now', true), '')::timestamptz, clock_timestamp())
$$;

select test.set_clock('2026-06-01 12:00:00+00');
