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

create or replace function autopost.workspaces_with_deliveries() returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: those of served_workspaces with waiting or claimed deliveries, by one probe each.
-- Reads:   deliveries.
declare
	v_mine text[] := autopost.served_workspaces();
	v_ids text[] := array(
		select distinct d.workspace_id from autopost.deliveries d
		where d.phase = 'claimed' and (v_mine is null or d.workspace_id = any (v_mine)));
	v_id text := '';
begin
	loop
		select d.workspace_id into v_id from autopost.deliveries d
		where d.phase in ('active', 'retry') and d.workspace_id > v_id
			and (v_mine is null or d.workspace_id = any (v_mine))
		order by d.workspace_id limit 1;
		exit when not found;
		v_ids := v_ids || v_id;
	end loop;
	return query select distinct u.id from unnest(v_ids) u (id);
end
$$;

create or replace function autopost.queue_gauges(p_workspace_id text, p_now timestamptz)
	returns table (platform text, rate_group text, gate text, channels bigint, waiting bigint, due bigint,
	in_flight bigint, oldest timestamptz)
language plpgsql stable
as $$
-- Purpose: the rows of queue_metrics of one workspace.
-- Reads:   as queue_metrics.
begin
	return query
	select j.platform, j.rate_group, j.gate, count(*), sum(j.waiting)::bigint, sum(j.due)::bigint,
		sum(j.in_flight)::bigint,
		min(j.oldest)
	from (
		select c.platform, c.rate_group, k.waiting, k.due, k.in_flight, k.oldest,
			case when k.waiting = 0 then 'sending'
				else autopost.gate_of(w.status, row(c.*)::autopost.channels, l.row, row(g.*)::autopost.channel_gates,
					k.oldest,
					p_now) end as gate
		from (
			select u.channel_id, sum(u.waiting) as waiting, sum(u.due) as due, sum(u.in_flight) as in_flight,
				min(u.oldest) as oldest
			from (
				select d.channel_id, count(*) as waiting, count(*) filter (where d.due_at <= p_now) as due,
					0::bigint as in_flight,
					min(d.due_at) as oldest
				from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.phase in ('active', 'retry') and d.status <> 'sending'
				group by d.channel_id
				union all
				select g.channel_id, 0, 0, g.inflight::bigint, null
				from autopost.channels_in_flight f
				join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = f.channel_id
				where f.workspace_id = p_workspace_id and g.inflight > 0
				union all
				select d.channel_id, 0, 0, count(*), null
				from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.phase = 'claimed'
				group by d.channel_id) u
			group by u.channel_id) k
		join autopost.workspaces w on w.workspace_id = p_workspace_id
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = k.channel_id
		join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = k.channel_id
		left join lateral (
			select row(l.*)::autopost.platform_limits from autopost.platform_limits l
			where l.workspace_id = p_workspace_id and l.platform = c.platform and l.rate_group = c.rate_group
			limit 1) l (row) on true) j
	group by j.platform, j.rate_group, j.gate;
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
--          _other. Works across the workspaces of served_workspaces.
-- Reads:   deliveries, channels, platform_limits, channel_gates, workspaces, quotas, quota_uses,
--          budgets.
declare
	v_now timestamptz := autopost.now_ts();
	v_id text;
	v_rows jsonb[] := '{}';
begin
	perform autopost.enter_all_workspaces();
	for v_id in select w.id from autopost.workspaces_with_deliveries() w (id) loop
		v_rows := v_rows || array(select to_jsonb(q) || jsonb_build_object('workspace_id', v_id)
			from autopost.queue_gauges(v_id, v_now) q);
	end loop;
	return query
	with judged as materialized (
		select j.workspace_id, j.platform, j.rate_group, j.gate, j.channels, j.waiting, j.due, j.in_flight, j.oldest
		from unnest(v_rows) r (row)
		cross join lateral jsonb_to_record(r.row) j (workspace_id text, platform text, rate_group text, gate text,
			channels bigint, waiting bigint, due bigint, in_flight bigint, oldest timestamptz)
	), named as (
		select j.platform, j.gate, j.channels, j.waiting, j.due, j.in_flight, j.oldest,
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
	select n.workspace_id, n.platform, n.rate_group, n.gate, sum(n.channels)::bigint, sum(n.waiting)::bigint,
		sum(n.due)::bigint, sum(n.in_flight)::bigint, nullif(min(n.oldest), 'infinity')
	from named n
	group by n.workspace_id, n.platform, n.rate_group, n.gate;
end
$$;
