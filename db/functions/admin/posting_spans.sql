create or replace function autopost.posting_spans(p_timezone text, p_window jsonb, p_from timestamptz, p_days int)
	returns tstzmultirange
language plpgsql stable
as $$
-- Purpose: the open spans of a posting window for p_days days from p_from, as in next_open;
--          adjacent spans are merged.
declare
	v_names constant text[] := array['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
	v_first date := (p_from at time zone p_timezone)::date;
begin
	return (
		select coalesce(range_agg(tstzrange(s.begins, s.ends)),
			'{}') * tstzmultirange(tstzrange(p_from, p_from + make_interval(days => p_days)))
		from generate_series(-1, p_days) day (n)
		cross join lateral jsonb_array_elements(p_window -> v_names[extract(isodow from v_first + day.n)::int]) w
		cross join lateral (
			select autopost.zoned_instant(p_timezone, v_first + day.n + (w.value ->> 0)::time) as begins,
				autopost.zoned_instant(p_timezone, v_first + day.n + (w.value ->> 1)::time
					+ case when (w.value ->> 1)::time <= (w.value ->> 0)::time then interval '1 day'
						else interval '0' end) as ends) s
		where s.begins < s.ends);
end
$$;

create or replace function autopost.after_open_time(p_spans tstzmultirange, p_work interval) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: the instant after this much open time; null if the spans end before.
select min(lower(s.span) + (p_work - s.before))
from (
	select u.span,
		coalesce(sum(upper(u.span) - lower(u.span)) over (
		order by u.span rows between unbounded preceding and 1 preceding), interval '0') as before
	from unnest(p_spans) u (span)) s
where p_work >= s.before and (upper_inf(s.span) or p_work < s.before + (upper(s.span) - lower(s.span)))
$$;
