create or replace function autopost.claim_deliveries(p_workspace_id text, p_run_id text, p_limit int)
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Moves due deliveries to 'sending' and leases them to p_run_id under a token of their own. The only place where attempt grows.
-- Returns: at most p_limit rows (1 to 1000) that may start within a second, at send_at where that is set. No rows is a normal answer.
-- Raises AP001 for a wrong argument, AP002, AP003, AP005 as enter_workspace.
-- Locks: only with SKIP LOCKED; see claim_group. Reads: messages, channels. Writes: deliveries, channels, platform_limits, channel_gates.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := autopost.now_ts();
	v_ids uuid[] := '{}';
	v_group record;
begin
	perform autopost.require('run_id', p_run_id <> '');
	if coalesce(p_limit not between 1 and 1000, true) then
		perform autopost.refuse('limit', format('%s is not between 1 and 1000', coalesce(p_limit::text, 'null')), 'pass a limit from 1 to 1000');
	end if;
	if v_status <> 'active' then
		return;
	end if;
	for v_group in
		select g.platform, g.rate_group, min(g.ready_at) as ready_at from autopost.channel_gates g
		where g.workspace_id = p_workspace_id
		and g.ready_at <= v_now and g.ready_at < 'infinity'
		group by g.platform, g.rate_group
		order by min(g.ready_at)
	loop
		v_ids := v_ids || autopost.claim_group(p_workspace_id, p_run_id, p_limit - cardinality(v_ids), v_group.platform, v_group.rate_group);
		exit when cardinality(v_ids) >= p_limit;
	end loop;
	return query
	select d.workspace_id, d.delivery_id, d.message_id, d.channel_id, c.platform, c.target_id, coalesce(a.auth_ref, c.auth_ref), c.rate_group,
		d.attempt, d.claim_token, d.sending_lease_until, d.send_at, d.rendered_text, d.render_meta, m.payload, c.settings, d.trace_id,
		c.on_unknown, d.unknown_outcomes, d.last_call_at, g.last_provider_message_id
	from autopost.deliveries d
	cross join lateral (select c.* from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
	cross join lateral (select g.* from autopost.channel_gates g where g.workspace_id = p_workspace_id and g.channel_id = d.channel_id limit 1) g
	cross join lateral (select m.payload from autopost.messages m where m.workspace_id = p_workspace_id and m.message_id = d.message_id limit 1) m
	left join lateral (select a.auth_ref from autopost.channel_auth a where a.workspace_id = p_workspace_id and a.channel_id = d.channel_id limit 1) a on true
	where d.workspace_id = p_workspace_id
	and d.delivery_id = any (v_ids)
	order by d.send_at nulls first, d.channel_id, d.due_at;
end
$$;
