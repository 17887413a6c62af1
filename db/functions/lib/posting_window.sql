create or replace function autopost.zoned_instant(p_timezone text, p_local timestamp) returns timestamptz
language plpgsql stable
as $$
-- The first instant at which a clock in the zone shows p_local (whole seconds) or later: of a time that comes twice the first, of
-- one that is left out the end of the gap. PostgreSQL by itself takes the second, and moves the other on by the length of the gap.
declare
	v_at timestamptz := p_local at time zone p_timezone;
	v_shift interval := (v_at at time zone p_timezone) - p_local;
	v_before int := 0; -- seconds after v_at - v_shift: here the gap has not begun
	v_after int; -- and here it is over
	v_middle int;
begin
	if v_shift > interval '0' then
		v_at := v_at - v_shift;
		v_after := extract(epoch from v_shift)::int;
		while v_after - v_before > 1 loop
			v_middle := (v_before + v_after) / 2;
			if (v_at + make_interval(secs => v_middle)) at time zone p_timezone >= p_local then
				v_after := v_middle;
			else
				v_before := v_middle;
			end if;
		end loop;
		return v_at + make_interval(secs => v_after);
	end if;
	-- How far the clock was put back during the day before, if it was.
	v_shift := ((v_at - interval '24 hours') at time zone p_timezone) - (p_local - interval '24 hours');
	if v_shift > interval '0' and (v_at - v_shift) at time zone p_timezone = p_local then
		return v_at - v_shift;
	end if;
	return v_at;
end
$$;

create or replace function autopost.next_open(p_timezone text, p_window jsonb, p_at timestamptz) returns timestamptz
language plpgsql stable
as $$
-- p_at itself where the window is open, else when it opens next; infinity when none of the next eight days opens it.
-- p_window: {"mon": [["09:00","12:00"],["14:00","24:00"]], …} by the clock of the zone. A day that is not named is closed; an end
-- that is not after its start is on the next day. A span begins and ends at instants (zoned_instant), the end excluded: one that
-- falls wholly into a gap is empty, and an hour that comes twice opens it once.
declare
	v_names constant text[] := array['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
	v_day date;
	v_span record;
	v_from timestamptz;
	v_until timestamptz;
	v_open timestamptz := 'infinity';
begin
	if not isfinite(p_at) then
		return p_at;
	end if;
	v_day := (p_at at time zone p_timezone)::date;
	for v_offset in -1..8 loop
		for v_span in
			select (s.value ->> 0)::time as begins, (s.value ->> 1)::time as ends
			from jsonb_array_elements(p_window -> v_names[extract(isodow from v_day + v_offset)::int]) s
		loop
			v_until := autopost.zoned_instant(p_timezone,
				v_day + v_offset + v_span.ends + case when v_span.ends <= v_span.begins then interval '1 day' else interval '0' end);
			continue when v_until <= p_at;
			v_from := autopost.zoned_instant(p_timezone, v_day + v_offset + v_span.begins);
			v_open := case when v_from < v_until then least(v_open, greatest(v_from, p_at)) else v_open end;
		end loop;
		-- Tomorrow may have begun where clocks are put back over midnight.
		exit when v_open = p_at or (v_offset >= 1 and isfinite(v_open));
	end loop;
	return v_open;
end
$$;

create or replace function autopost.opens_at(
	p_window_mode text, p_timezone text, p_window jsonb, p_at timestamptz, p_slot timestamptz default null
) returns timestamptz
language plpgsql stable
as $$
-- From p_at on, the first instant at which a channel of these columns is open, and open too at p_slot, the earliest slot of its next
-- call. An immediate channel always is. No timezone is UTC.
declare
	v_at timestamptz;
	v_slot timestamptz;
begin
	if p_window_mode <> 'windowed' then
		return p_at;
	end if;
	v_at := autopost.next_open(coalesce(p_timezone, 'UTC'), p_window, p_at);
	if p_slot > v_at then
		v_slot := autopost.next_open(coalesce(p_timezone, 'UTC'), p_window, p_slot);
		return case when v_slot > p_slot then v_slot else v_at end;
	end if;
	return v_at;
end
$$;

create or replace function autopost.windows_of(p_workspace_id text, p_channel_ids text[], p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Of these channels those whose posting window is closed now ("closed") or may be for a slot within slot_horizon_ms ("closing"):
-- {channel_id: …}. Channels of the same hours are reckoned once.
-- Reads: channels, settings.
declare
	v_last timestamptz := p_now + autopost.setting_interval('slot_horizon_ms');
begin
	if not exists (
		select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids) and c.window_mode = 'windowed'
	) then
		return '{}';
	end if;
	return (
		select coalesce(jsonb_object_agg(u.channel_id, h.is), '{}')
		from (
			select c.timezone, c.posting_window, array_agg(c.channel_id) as channels
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids) and c.window_mode = 'windowed'
			group by c.timezone, c.posting_window) w
		cross join lateral (select case
			when autopost.opens_at('windowed', w.timezone, w.posting_window, p_now) > p_now then 'closed'
			when autopost.opens_at('windowed', w.timezone, w.posting_window, v_last) > v_last then 'closing' end as is offset 0) h
		cross join lateral unnest(w.channels) u (channel_id)
		where h.is is not null);
end
$$;

create or replace function autopost.posting_window_error(p_window jsonb) returns text
language plpgsql immutable
as $$
-- What is wrong with a posting window; null when nothing is. Spans may overlap.
declare
	v_day record;
	v_span jsonb;
begin
	if jsonb_typeof(p_window) <> 'object' then
		return 'is no object of days';
	end if;
	for v_day in select e.key, e.value from jsonb_each(p_window) e loop
		if v_day.key not in ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun') then
			return format('has %L, which is no day', v_day.key);
		end if;
		if jsonb_typeof(v_day.value) <> 'array' then
			return format('has no list of spans for %s', v_day.key);
		end if;
		for v_span in select s.value from jsonb_array_elements(v_day.value) s loop
			if jsonb_typeof(v_span) <> 'array' or jsonb_array_length(v_span) <> 2
			or coalesce(v_span ->> 0, '') !~ '^([01]\d|2[0-3]):[0-5]\d$' or coalesce(v_span ->> 1, '') !~ '^(([01]\d|2[0-3]):[0-5]\d|24:00)$' then
				return format('has %s for %s, which is no pair of times', v_span, v_day.key);
			end if;
		end loop;
	end loop;
	return null;
end
$$;

create or replace function autopost.is_zone(p_timezone text) returns boolean
language plpgsql stable
as $$
-- Whether this is UTC or the name of a region's zone. PostgreSQL takes more than that: abbreviations, which know no summer time, and POSIX forms,
-- whose signs are reversed and whose letters may be anything.
begin
	if p_timezone <> 'UTC' and (p_timezone !~ '^[A-Za-z_-]+(/[A-Za-z_-]+)+$' and p_timezone !~ '^Etc/GMT[+-]\d{1,2}$') then
		return false;
	end if;
	perform timestamp '2000-01-01' at time zone p_timezone;
	return true;
exception when invalid_parameter_value then
	return false;
end
$$;

create or replace function autopost.check_posting_window() returns trigger
language plpgsql
as $$
-- A channel whose window could not be reckoned is refused when it is written, not when it is claimed. Raises AP001 naming the column.
declare
	v_error text := autopost.posting_window_error(new.posting_window);
	v_example constant text := 'write {"mon": [["09:00", "12:00"], ["14:00", "24:00"]], …} with the days mon to sun';
begin
	if new.timezone is not null and not autopost.is_zone(new.timezone) then
		perform autopost.refuse('timezone', format('%L is no zone that is known here', new.timezone), 'use a name such as Europe/Moscow, or UTC');
	end if;
	if v_error is not null then
		perform autopost.refuse('posting_window', v_error, v_example);
	end if;
	if new.window_mode = 'windowed' and new.posting_window is null then
		perform autopost.refuse('posting_window', 'is missing though window_mode is windowed', v_example);
	end if;
	return new;
end
$$;

create or replace trigger check_posting_window
	before insert or update of timezone, window_mode, posting_window on autopost.channels
	for each row when (new.timezone is not null or new.window_mode = 'windowed' or new.posting_window is not null)
	execute function autopost.check_posting_window();
