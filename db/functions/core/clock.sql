create or replace function autopost.clock_agrees(p_now timestamptz) returns boolean
language plpgsql stable
as $$
-- Purpose: true if an observer with its own clock has recently confirmed p_now, or if no observer
--          exists.
-- Reads:   clock_observers.
begin
	return not exists (select 1 from autopost.clock_observers)
		or exists (select 1 from autopost.clock_observers o
			where o.seen_at between p_now - autopost.clock_trust() and p_now and o.trusted_from <= p_now);
end
$$;

create or replace function autopost.clock_trusted(p_observer text, p_now timestamptz) returns boolean
language plpgsql
as $$
-- Purpose: true if the clock may end leases. If all observers are gone, p_observer (without a
--          clock) is trusted after it has asked for longer than the maximum silence of a run.
-- Reads:   clock_observers.
-- Writes:  clock_observers.
begin
	if autopost.clock_agrees(p_now) then
		return true;
	end if;
	insert into autopost.clock_observers as o (observer, seen_at, trusted_from)
	values (p_observer, p_now, p_now + autopost.run_silence())
	on conflict (observer) do update set seen_at = excluded.seen_at,
		trusted_from = case when p_now - o.seen_at between interval '0' and autopost.clock_trust() then o.trusted_from
			else excluded.trusted_from end;
	return false;
end
$$;
