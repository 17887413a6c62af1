create or replace function autopost.channels_of(p_workspace_id text, p_payload jsonb) returns text[]
language sql stable
as $$
-- Purpose: the channels that would get a post now.
-- Reads:   channels, media_origin.
select r.ids
from (select autopost.prepare_post(p_workspace_id, jsonb_build_object('raw', p_payload, 'unfetched', true)) as post) p
cross join lateral autopost.route_post(p_workspace_id, autopost.frozen_post(p.post || '{"decided": true}', null,
	autopost.now_ts()), '', 1000000) r
where not p.post ? 'errors'
$$;

create or replace function autopost.expected_posts(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_channel_id text) returns table (at timestamptz, recurrence_id uuid, channels bigint)
language plpgsql stable
as $$
-- Purpose: posts of recurrences that are not made yet, for one channel or for all (null). Their posts are
--          taken in turn, and each goes to the channels that would get it now.
-- Reads:   recurrences, occurrences, channels.
begin
	return query
	with turns as materialized (
		select o.at, o.recurrence_id, r.payloads, ((r.taken + row_number() over (partition by o.recurrence_id
			order by o.at,
			o.occurrence_id) - 1) % jsonb_array_length(r.payloads))::int as turn
		from autopost.recurrences r
		join autopost.occurrences o on o.workspace_id = p_workspace_id and o.recurrence_id = r.recurrence_id
			and o.status = 'expected'
		where r.workspace_id = p_workspace_id and r.enabled
		and exists (select 1 from autopost.occurrences i where i.workspace_id = p_workspace_id
			and i.recurrence_id = r.recurrence_id and i.status = 'expected' and i.at >= p_from and i.at < p_until)
	), due as materialized (
		select t.* from turns t where t.at >= p_from and t.at < p_until
	), routed as materialized (
		select d.recurrence_id, d.turn, autopost.channels_of(p_workspace_id, d.payloads -> d.turn) as ids
		from (select distinct x.recurrence_id, x.turn, x.payloads from due x) d
	)
	select d.at, d.recurrence_id, case when p_channel_id is null then coalesce(cardinality(r.ids), 0) else 1 end::bigint
	from due d
	join routed r using (recurrence_id, turn)
	where p_channel_id is null or p_channel_id = any (r.ids);
end
$$;

create or replace function autopost.recurrences_of(p_workspace_id text, p_message_ids uuid[])
	returns table (message_id uuid, recurrence_id uuid)
language plpgsql stable
as $$
-- Purpose: the recurrences of those messages that one made.
-- Reads:   messages, occurrences.
begin
	return query
	select m.message_id, o.recurrence_id
	from autopost.messages m
	join autopost.occurrences o on o.workspace_id = p_workspace_id
		and o.occurrence_id = substring(m.source_ref
			from '^occurrence:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$')::uuid
	where m.workspace_id = p_workspace_id and m.message_id = any (p_message_ids);
end
$$;

create or replace function autopost.calendar_posts(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_channel_id text) returns table (at timestamptz, kind text, message_id uuid, channels bigint)
language plpgsql stable set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off set jit = off
as $$
-- Purpose: the posts of an interval: sent in it, or due in it while they wait or are in flight. The channels of a
--          post with one planned time are one row. Counts at most calendar_bound deliveries, channel by channel:
--          the posts of the first channels are usually those of all.
--          Most posts are sent within an hour after their id was made, and are found by it (sent_late).
--          The orders name the indexes: with stale statistics the planner takes the table for small
--          and would read all of a channel.
-- Reads:   channels, deliveries.
begin
	return query
	select min(r.at), r.kind, r.message_id, count(*)
	from (
		(select 'queued' as kind, d.due_at as at, d.message_id, d.trace_id,
			greatest(d.not_before, d.scheduled_for) as planned_at -- a call of planned_at would take most of the time
		from autopost.in_flight(p_workspace_id) d
		where (p_channel_id is null or d.channel_id = p_channel_id)
			and d.due_at >= p_from and d.due_at < p_until)
		union all
		select x.kind, x.at, x.message_id, x.trace_id, x.planned_at
		from (
			select c.channel_id from autopost.channels c
			where c.workspace_id = p_workspace_id and (p_channel_id is null or c.channel_id = p_channel_id) offset 0) c
		cross join lateral (
			(select 'sent' as kind, d.sent_at as at, d.message_id, d.trace_id,
				greatest(d.not_before, d.scheduled_for) as planned_at
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id and d.phase = 'sent'
				and autopost.sent_late(d.delivery_id, d.sent_at) and d.sent_at >= p_from and d.sent_at < p_until
			order by d.sent_at)
			union all
			(select 'sent', d.sent_at, d.message_id, d.trace_id, greatest(d.not_before, d.scheduled_for)
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
				and d.phase in ('sent', 'deduped', 'failed_permanent', 'dead')
				and d.delivery_id >= autopost.first_id_at(p_from - interval '1 hour')
				and d.delivery_id < autopost.first_id_at(p_until + interval '1 hour')
				and not autopost.sent_late(d.delivery_id, d.sent_at) and d.sent_at >= p_from and d.sent_at < p_until
			order by d.delivery_id)
			union all
			(select 'queued', d.due_at, d.message_id, d.trace_id, greatest(d.not_before, d.scheduled_for)
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending'
				and d.due_at >= p_from and d.due_at < p_until
			order by d.due_at)) x
		limit autopost.calendar_bound()) r
	group by r.kind, r.message_id, r.trace_id, r.planned_at;
end
$$;

create or replace function autopost.calendar_items(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_channel_id text) returns table (at timestamptz, kind text, message_id uuid, recurrence_id uuid, channels bigint)
language sql stable
as $$
-- Purpose: the items of a calendar without an order: posts, and those that recurrences will bring.
-- Reads:   channels, deliveries, recurrences, occurrences.
select p.at, p.kind, p.message_id, null::uuid, p.channels
from autopost.calendar_posts(p_workspace_id, p_from, p_until, p_channel_id) p
union all
select e.at, 'expected', null, e.recurrence_id, e.channels
from autopost.expected_posts(p_workspace_id, p_from, p_until, p_channel_id) e
$$;

create or replace function autopost.check_calendar(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_channel_id text) returns void
language plpgsql stable
as $$
-- Purpose: checks the interval and the channel of a calendar.
-- Raises:  AP001 for a wrong argument; an interval has at most 100 days.
-- Reads:   channels.
begin
	perform autopost.require_argument('from', isfinite(p_from)), autopost.require_argument('until', isfinite(p_until));
	if p_until <= p_from or p_until > p_from + interval '100 days' then
		perform autopost.raise_argument('until', format('must be after from and at most 100 days later, got %s',
			autopost.instant_text(p_until)), 'choose a shorter interval');
	elsif p_channel_id is not null and not exists (select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id) then
		perform autopost.raise_argument('channel_id', format('must be a channel of the workspace, got %s',
			p_channel_id),
			'run autopost channel list');
	end if;
end
$$;

create or replace function autopost.calendar(p_workspace_id text, p_from timestamptz, p_until timestamptz,
	p_channel_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the calendar of an interval, for one channel or all (null): what was sent in it, what
--          waits and is due in it, what recurrences will bring. Channels of a post with one planned
--          time are one item. The cost depends on the interval and the number of channels, not on
--          the size of the queue and its history.
-- Returns: {"items": [{"at": first time, "kind": "sent" | "queued" | "expected", "message_id",
--          "recurrence_id", "channels": their number}], "more": true if there are more than 5,000
--          items or more than 100,000 deliveries}, ordered by "at".
-- Raises:  AP001 for a wrong argument; an interval has at most 100 days.
-- Reads:   channels, deliveries, messages, recurrences, occurrences.
declare
	v_items jsonb;
	v_rows bigint;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_calendar(p_workspace_id, p_from, p_until, p_channel_id);
	with all_items as materialized (
		select c.at, c.kind, c.message_id, c.recurrence_id, c.channels
		from autopost.calendar_items(p_workspace_id, p_from, p_until, p_channel_id) c
	), items as materialized (
		select a.at, a.kind, a.message_id, a.recurrence_id, a.channels from all_items a
		order by 1, 2, 3
		limit 5001)
	select jsonb_agg(jsonb_build_object('at', i.at, 'kind', i.kind, 'message_id', i.message_id, 'recurrence_id',
		coalesce(i.recurrence_id, r.recurrence_id), 'channels', i.channels) order by i.at, i.kind, i.message_id),
		(select sum(a.channels) from all_items a where a.kind <> 'expected')
	into v_items, v_rows
	from items i
	left join autopost.recurrences_of(p_workspace_id, array(select n.message_id from items n
		where n.message_id is not null)) r on r.message_id = i.message_id;
	return jsonb_build_object('items', coalesce(jsonb_path_query_array(v_items, '$[0 to 4999]'), '[]'), 'more',
		coalesce(jsonb_array_length(v_items) > 5000 or v_rows >= autopost.calendar_bound(), false));
end
$$;
