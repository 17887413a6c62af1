create or replace function autopost.forecast(p_workspace_id text) returns jsonb
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: estimates when the queue is empty, from rates, quotas and posting windows, if no
--          delivery is added and none fails. It ignores the duration of calls; see drain_of.
-- Returns: {"status": "forecast", "as_of", "waiting", "held": deliveries that wait for a person,
--          "drains_at": the end of those that do not, "groups": [{"platform", "rate_group",
--          "channels", "waiting", "oldest_due_at", "drains_at", "limited_by"}], "channels": [the
--          first 1,000 with a queue, by id: {"channel_id", "platform", "rate_group", "waiting",
--          "held", "starts_at", "drains_at", "limited_by"}], "more": the number of unlisted
--          channels}. Null times: only a person ends the wait.
-- Reads:   channels, deliveries, platform_limits, quotas, quota_uses.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := autopost.now_ts();
begin
	return (
		with recursive found as (
			(select d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.phase in ('active', 'retry') and d.status <> 'sending'
			order by d.channel_id limit 1)
			union all
			select n.channel_id from found, lateral (
				select d.channel_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.phase in ('active', 'retry') and d.status <> 'sending'
					and d.channel_id > found.channel_id
				order by d.channel_id limit 1) n
		), counted as materialized (
			select c.channel_id, c.platform, c.rate_group, row(c.*)::autopost.channels as channel,
				q.row, ((q.row ->> 'waiting')::int - (q.row ->> 'held')::int) * (q.row ->> 'cost')::numeric as slots
			from (select f.channel_id from found f limit 1000) f
			join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = f.channel_id
			cross join lateral (select autopost.queue_rows(p_workspace_id, c.channel_id) as row offset 0) q
		), shared as (
			-- Channels of a group get its slots in turn. When one has had all of its own, each longer queue
			-- has had as many.
			select k.*,
				sum(k.slots) over w + k.slots * (count(*) over (partition by k.platform,
				k.rate_group) - count(*) over w) as group_slots
			from counted k
			window w as (partition by k.platform, k.rate_group order by k.slots, k.channel_id)
		), drained as materialized (
			select s.channel_id, s.platform, s.rate_group, (s.row ->> 'waiting')::int as waiting,
				(s.row ->> 'held')::int as held, (s.row ->> 'first_due_at')::timestamptz as first_due_at,
				autopost.drain_of(v_status, s.channel, l.row, s.row || jsonb_build_object('group_slots', s.group_slots),
					v_now) as drain
			from shared s
			left join lateral (
				select row(l.*)::autopost.platform_limits from autopost.platform_limits l
				where l.workspace_id = p_workspace_id and l.platform = s.platform and l.rate_group = s.rate_group
					limit 1) l (row) on true
		)
		select jsonb_build_object('status', 'forecast', 'as_of', v_now, 'waiting', coalesce(sum(t.waiting), 0), 'held',
			coalesce(sum(t.held), 0),
			'drains_at', max((t.drain ->> 'drains_at')::timestamptz), 'more', (select count(*) from found) - count(*),
			'groups', (select coalesce(jsonb_agg(to_jsonb(g) order by g.platform, g.rate_group), '[]') from (
				select x.platform, x.rate_group, count(*) as channels, sum(x.waiting) as waiting,
					min(x.first_due_at) as oldest_due_at,
					max((x.drain ->> 'drains_at')::timestamptz) as drains_at,
					(array_agg(x.drain ->> 'limited_by'
						order by (x.drain ->> 'drains_at')::timestamptz desc nulls last))[1] as limited_by
				from drained x group by x.platform, x.rate_group) g),
			'channels',
				coalesce(jsonb_agg(jsonb_build_object('channel_id', t.channel_id, 'platform', t.platform, 'rate_group',
				t.rate_group,
				'waiting', t.waiting, 'held', t.held) || t.drain order by t.channel_id), '[]'))
		from drained t);
end
$$;
