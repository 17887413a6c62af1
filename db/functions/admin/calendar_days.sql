create or replace function autopost.closed_hours(p_workspace_id text, p_from timestamptz, p_until timestamptz)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the hours from p_from in which most enabled channels are outside their posting window for the whole
--          hour: [instants]. Channels with one window are looked at once.
-- Reads:   channels.
begin
	return (
		with windows as (
			select count(*) as channels, case when c.window_mode = 'windowed' and c.posting_window is not null
				then autopost.posting_spans(coalesce(c.timezone, 'UTC'), c.posting_window, p_from,
					extract(day from p_until - p_from)::int + 1) end as spans
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.enabled
			group by c.window_mode, c.timezone, c.posting_window
		)
		select coalesce(jsonb_agg(h.at order by h.at), '[]')
		from generate_series(p_from, p_until - interval '1 hour', interval '1 hour') h (at)
		where (select sum(w.channels) from windows w where not w.spans && tstzrange(h.at, h.at + interval '1 hour'))
			* 2 > (select sum(w.channels) from windows w));
end
$$;

create or replace function autopost.calendar_days(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_zone text, p_channel_id text, p_shown int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the calendar of an interval by the days of a time zone, for one channel or all (null): the number of
--          items of each day, and the first p_shown (0 to 200) of each with the beginning of their text. See
--          calendar for the items and their cost.
-- Returns: {"days": [{"day": "2026-12-01", "sent", "queued", "expected", "items": [{"at", "kind", "message_id",
--          "recurrence_id", "channels", "excerpt"}]}], "closed": the hours of at most eight days in which most
--          channels are outside their posting window, "more": true if there are more than 100,000 deliveries; then
--          numbers may be too small}. Days without items are missing.
-- Raises:  AP001 for a wrong argument; an interval has at most 100 days.
-- Reads:   channels, deliveries, messages, recurrences, occurrences.
declare
	v_days jsonb;
	v_rows bigint;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_calendar(p_workspace_id, p_from, p_until, p_channel_id), autopost.require_argument('shown',
		p_shown is not null);
	if p_shown not between 0 and 200 then
		perform autopost.raise_argument('shown', format('must be 0 to 200, got %s', p_shown), 'pass a smaller number');
	elsif not coalesce(autopost.is_zone(p_zone), false) then
		perform autopost.raise_argument('zone', format('must be a time zone, got %s', coalesce(p_zone, 'null')),
			'pass a name such as Europe/Moscow');
	end if;
	with items as materialized (
		select c.*, (c.at at time zone p_zone)::date as day, row_number() over (partition by
			(c.at at time zone p_zone)::date order by c.at, c.kind, c.message_id, c.recurrence_id) as n
		from autopost.calendar_items(p_workspace_id, p_from, p_until, p_channel_id) c
	), shown as materialized (
		select i.* from items i where i.n <= p_shown
	), texts as (
		select s.day, jsonb_agg(jsonb_build_object('at', s.at, 'kind', s.kind, 'message_id', s.message_id,
			'recurrence_id', coalesce(s.recurrence_id, r.recurrence_id), 'channels', s.channels, 'excerpt',
			left(coalesce(m.payload ->> 'text', e.payloads -> 0 ->> 'text'), 100)) order by s.n) as items
		from shown s
		left join autopost.messages m on m.workspace_id = p_workspace_id and m.message_id = s.message_id
		left join autopost.recurrences e on e.workspace_id = p_workspace_id and e.recurrence_id = s.recurrence_id
		left join autopost.recurrences_of(p_workspace_id, array(select n.message_id from shown n
			where n.message_id is not null)) r on r.message_id = s.message_id
		group by s.day
	)
	select jsonb_agg(jsonb_build_object('day', d.day, 'sent', d.sent, 'queued', d.queued, 'expected', d.expected,
		'items', coalesce(t.items, '[]')) order by d.day), sum(d.rows) into v_days, v_rows
	from (
		select i.day, count(*) filter (where i.kind = 'sent') as sent, count(*) filter (where i.kind = 'queued') as queued,
			count(*) filter (where i.kind = 'expected') as expected,
			sum(i.channels) filter (where i.kind <> 'expected') as rows
		from items i group by i.day) d
	left join texts t on t.day = d.day;
	return jsonb_build_object('days', coalesce(v_days, '[]'), 'closed', case
		when p_until <= p_from + interval '8 days' then autopost.closed_hours(p_workspace_id, p_from, p_until)
		else '[]' end, 'more', coalesce(v_rows >= autopost.calendar_bound(), false));
end
$$;
