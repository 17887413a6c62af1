create or replace function autopost.now_ts() returns timestamptz
language sql volatile parallel safe
as $$
-- Purpose: the clock of the engine. Every deciding instant comes from it, read after locks are
--          held. Tests replace this function.
select clock_timestamp()
$$;

create or replace function autopost.instant_of(p_text text) returns timestamptz
language plpgsql immutable parallel safe
as $$
-- Purpose: the instant of a text with an offset, as in jsonb. Unlike a cast it may use columns in UPDATE
--          on a cluster.
begin
	return p_text::timestamptz;
end
$$;

create or replace function autopost.utc(p_at timestamptz) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: an instant as text in UTC, with microseconds; null for an infinite one.
begin
	return case when isfinite(p_at) then to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') end;
end
$$;

create or replace function autopost.later(p_at timestamptz, p_by interval) returns timestamptz
language plpgsql immutable parallel safe
as $$
-- Purpose: p_at + p_by for an interval without days and months. Unlike the operator it may use columns in
--          UPDATE on a cluster: with days it would depend on the time zone of the session.
begin
	return p_at + p_by;
end
$$;
