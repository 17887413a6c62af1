create or replace function autopost.zoned_instant(p_timezone text, p_local timestamp) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the first instant when a clock in the zone shows p_local (whole seconds) or later. A
--          repeated time gives its first instant; a skipped time gives the end of the gap.
--          PostgreSQL alone returns the second instant, and shifts a skipped time by the gap.
declare
	v_at timestamptz := p_local at time zone p_timezone;
	v_shift interval := (v_at at time zone p_timezone) - p_local;
	v_before int := 0; -- seconds after v_at - v_shift: before the gap
	v_after int; -- after the gap
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
	-- How far the clock was set back during the day before.
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
-- Purpose: p_at if the window is open, else the time when it opens next; infinity if not within
--          eight days. p_window: {"mon": [["09:00","12:00"],["14:00","24:00"]], …} in the zone. A
--          missing day is closed. An end that is not after its start is on the next day. Spans are
--          half-open instants of zoned_instant: a span inside a gap is empty, and a repeated hour
--          opens it once.
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
				v_day + v_offset + v_span.ends + case when v_span.ends <= v_span.begins
					then interval '1 day' else interval '0' end);
			continue when v_until <= p_at;
			v_from := autopost.zoned_instant(p_timezone, v_day + v_offset + v_span.begins);
			v_open := case when v_from < v_until then least(v_open, greatest(v_from, p_at)) else v_open end;
		end loop;
		-- A clock that is set back over midnight may have started the next day already.
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
-- Purpose: the first instant from p_at on when the channel is open, and open at p_slot too, the
--          earliest slot of its next call. An immediate channel is always open. Null timezone: UTC.
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

create or replace function autopost.hours_key(p_timezone text, p_window jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: a text that is equal for channels with equal hours.
select coalesce(p_timezone, 'UTC') || p_window::text
$$;

create or replace function autopost.hours_are_open(p_key text, p_from timestamptz, p_until timestamptz) returns boolean
language plpgsql stable
as $$
-- Purpose: true if the hours of a hours_key are open at both instants, a few seconds apart.
declare
	v_begin int := strpos(p_key, '{');
	v_timezone text := left(p_key, v_begin - 1);
	v_window jsonb := substr(p_key, v_begin);
begin
	return autopost.next_open(v_timezone, v_window, p_from) = p_from
		and autopost.next_open(v_timezone, v_window, p_until) = p_until;
end
$$;

create or replace function autopost.windows_of(p_workspace_id text, p_channel_ids text[],
	p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: the channels of these whose posting window is closed now ("closed") or may close within
--          slot_horizon ("closing"). Channels with equal hours are computed once.
-- Returns: {channel_id: "closed" | "closing"}.
-- Reads:   channels.
declare
	v_last timestamptz := p_now + autopost.slot_horizon();
begin
	return (
		select coalesce(jsonb_object_agg(u.channel_id, h.is), '{}')
		from (
			select c.timezone, c.posting_window, array_agg(c.channel_id) as channels
			from unnest(p_channel_ids) x (channel_id)
			cross join lateral (
				select c.channel_id, c.window_mode, c.timezone, c.posting_window from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = x.channel_id limit 1) c
			where c.window_mode = 'windowed'
			group by c.timezone, c.posting_window) w
		cross join lateral (select case
			when autopost.opens_at('windowed', w.timezone, w.posting_window, p_now) > p_now then 'closed'
			when autopost.opens_at('windowed', w.timezone, w.posting_window, v_last) > v_last
				then 'closing' end as is offset 0) h
		cross join lateral unnest(w.channels) u (channel_id)
		where h.is is not null);
end
$$;

create or replace function autopost.posting_window_error(p_window jsonb) returns text
language plpgsql immutable
as $$
-- Purpose: why a posting window is invalid, else null. Spans may overlap.
declare
	v_day record;
	v_span jsonb;
begin
	if jsonb_typeof(p_window) <> 'object' then
		return 'must be an object of days';
	end if;
	for v_day in select e.key, e.value from jsonb_each(p_window) e loop
		if v_day.key not in ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun') then
			return format('has %L, which is not a day', v_day.key);
		end if;
		if jsonb_typeof(v_day.value) <> 'array' then
			return format('has no list of spans for %s', v_day.key);
		end if;
		for v_span in select s.value from jsonb_array_elements(v_day.value) s loop
			if jsonb_typeof(v_span) <> 'array' or jsonb_array_length(v_span) <> 2
			or coalesce(v_span ->> 0, '') !~ '^([01]\d|2[0-3]):[0-5]\d$'
				or coalesce(v_span ->> 1, '') !~ '^(([01]\d|2[0-3]):[0-5]\d|24:00)$' then
				return format('has %s for %s, which is not a pair of times', v_span, v_day.key);
			end if;
		end loop;
	end loop;
	return null;
end
$$;

create or replace function autopost.is_zone(p_timezone text) returns boolean
language plpgsql stable
as $$
-- Purpose: true for UTC and for names of regions. PostgreSQL also accepts abbreviations, which
--          ignore summer time, and POSIX forms, whose signs are reversed.
begin
	if p_timezone <> 'UTC' and (p_timezone !~ '^[A-Za-z_-]+(/[A-Za-z_-]+)+$' and p_timezone !~ '^Etc/GMT[+-]\d{1,2}$')
		then
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
-- Purpose: refuses an invalid timezone or posting window when a channel is written.
-- Raises:  AP001 with the name of the column.
declare
	v_error text := autopost.posting_window_error(new.posting_window);
	v_example constant text := 'write {"mon": [["09:00", "12:00"], ["14:00", "24:00"]], …} with the days mon to sun';
begin
	if new.timezone is not null and not autopost.is_zone(new.timezone) then
		perform autopost.raise_argument('timezone', format('unknown time zone %L', new.timezone),
			'use a name such as Europe/Moscow, or UTC');
	end if;
	if v_error is not null then
		perform autopost.raise_argument('posting_window', v_error, v_example);
	end if;
	if new.window_mode = 'windowed' and new.posting_window is null then
		perform autopost.raise_argument('posting_window', 'must be given if window_mode is windowed', v_example);
	end if;
	return new;
end
$$;

create or replace trigger check_posting_window
	before insert or update of timezone, window_mode, posting_window on autopost.channels
	for each row when (new.timezone is not null or new.window_mode = 'windowed' or new.posting_window is not null)
	execute function autopost.check_posting_window();
