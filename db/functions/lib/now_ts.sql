create or replace function autopost.now_ts() returns timestamptz
language sql volatile parallel safe
as $$
-- The engine's clock: every deciding instant is read through here, after locks are held.
-- Tests replace this function; production has no hook.
select clock_timestamp()
$$;
