create or replace function autopost.now_ts() returns timestamptz
language sql volatile parallel safe
as $$
-- Purpose: the clock of the engine. Every deciding instant comes from it, read after locks are
--          held. Tests replace this function.
select clock_timestamp()
$$;
