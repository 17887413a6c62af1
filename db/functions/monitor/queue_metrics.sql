create or replace function autopost.gate_of(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_gate autopost.channel_gates,
		p_oldest_due_at timestamptz, p_now timestamptz
) returns text
language plpgsql stable
as $$
-- Purpose: the one wait reason of the oldest waiting delivery of a channel; ready if the next claim
--          takes it. It uses only the rows of the channel; why lists all reasons.
-- Reads:   quotas, quota_uses, budgets.
begin
	return case
		when p_status <> 'active' then 'workspace'
		when p_channel.auth_held then 'auth_lost'
		when not p_channel.enabled then 'channel_disabled'
		when p_oldest_due_at = 'infinity' then 'unknown_outcome'
		when greatest(p_channel.paused_until, p_channel.held_until) > p_now then 'channel_paused'
		when p_channel.credential_until > p_now then 'credential_missing'
		when p_oldest_due_at > p_now then 'not_due'
		when p_limit.breaker_opened_at is not null then 'breaker'
		when p_channel.cooldown_until > p_now then 'channel_cooldown'
		when p_limit.cooldown_until > p_now then 'group_cooldown'
		when p_limit.quota_until > p_now then 'group_quota'
		when autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, p_now) > p_now
			then 'window'
		when p_limit.rate_rps > 0 and p_limit.next_allowed_at > p_now then 'group_rate'
		when p_channel.effective_rps > 0 and p_channel.next_allowed_at > p_now then 'channel_rate'
		when p_gate.inflight >= p_channel.max_parallel then 'max_parallel'
		when p_gate.ready_at <= p_now then 'ready'
		when autopost.channel_quota_until(p_channel.workspace_id, p_channel.channel_id, 1, p_now) is not null
			then 'channel_quota'
		when exists (select 1 from autopost.budgets b where b.workspace_id = p_channel.workspace_id
			and b.auth_ref = autopost.current_auth_ref(p_channel.workspace_id, p_channel)) then 'budget'
		else 'gate' end;
end
$$;

create or replace function autopost.queue_metrics()
returns table (workspace_id text, platform text, rate_group text, gate text, channels bigint, waiting bigint,
	due bigint, in_flight bigint, oldest_due_at timestamptz)
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the queue as gauges: per workspace, platform, rate group and wait reason (gate_of;
--          sending if nothing waits) the number of channels, of waiting, due and in-flight
--          deliveries, and the earliest due time. To bound the labels, all but the fifty workspaces
--          with most deliveries, and all but the twenty largest groups of each, are summed up as
--          _other. Works across workspaces.
-- Reads:   deliveries, channels, platform_limits, channel_gates, workspaces, quotas, quota_uses,
--          budgets.
declare
	v_now timestamptz := autopost.now_ts();
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	return query
	with counted as materialized (
		select d.workspace_id, d.channel_id, count(*) as waiting, count(*) filter (where d.due_at <= v_now) as due,
			0::bigint as in_flight, min(d.due_at) as oldest
		from autopost.deliveries d
		where d.phase in ('active', 'retry') and d.status <> 'sending'
		group by d.workspace_id, d.channel_id
		union all
		select g.workspace_id, g.channel_id, 0, 0, g.inflight::bigint, null
		from autopost.channel_gates g
		where g.inflight > 0
		union all
		select d.workspace_id, d.channel_id, 0, 0, count(*), null
		from autopost.deliveries d
		where d.phase = 'claimed'
		group by d.workspace_id, d.channel_id
	), judged as materialized (
		select k.workspace_id, c.platform, c.rate_group, k.waiting, k.due, k.in_flight, k.oldest,
			case when k.waiting = 0 then 'sending'
				else autopost.gate_of(w.status, row(c.*)::autopost.channels, l.row, row(g.*)::autopost.channel_gates, k.oldest, v_now) end as gate
		from (
			select u.workspace_id, u.channel_id, sum(u.waiting)::bigint as waiting, sum(u.due)::bigint as due,
				sum(u.in_flight)::bigint as in_flight, min(u.oldest) as oldest
			from counted u
			group by u.workspace_id, u.channel_id) k
		join autopost.workspaces w on w.workspace_id = k.workspace_id
		join autopost.channels c on c.workspace_id = k.workspace_id and c.channel_id = k.channel_id
		join autopost.channel_gates g on g.workspace_id = k.workspace_id and g.channel_id = k.channel_id
		left join lateral (
			select row(l.*)::autopost.platform_limits from autopost.platform_limits l
			where l.workspace_id = k.workspace_id and l.platform = c.platform and l.rate_group = c.rate_group
				limit 1) l (row) on true
		where v_mine is null or k.workspace_id = any (v_mine)
	), named as (
		select j.platform, j.gate, j.waiting, j.due, j.in_flight, j.oldest,
			case when p.place <= 50 then j.workspace_id else '_other' end as workspace_id,
			case when p.place <= 50 and s.place <= 20 then j.rate_group else '_other' end as rate_group
		from judged j
		join (
			select x.workspace_id, row_number() over (order by sum(x.waiting + x.in_flight) desc,
				x.workspace_id) as place
			from judged x group by x.workspace_id) p on p.workspace_id = j.workspace_id
		join (
			select x.workspace_id, x.platform, x.rate_group,
				row_number() over (partition by x.workspace_id
					order by sum(x.waiting + x.in_flight) desc, x.platform, x.rate_group) as place
			from judged x group by x.workspace_id, x.platform, x.rate_group) s
			on s.workspace_id = j.workspace_id and s.platform = j.platform and s.rate_group = j.rate_group
	)
	select n.workspace_id, n.platform, n.rate_group, n.gate, count(*), sum(n.waiting)::bigint, sum(n.due)::bigint,
		sum(n.in_flight)::bigint,
		nullif(min(n.oldest), 'infinity')
	from named n
	group by n.workspace_id, n.platform, n.rate_group, n.gate;
end
$$;
