create or replace function autopost.claim_acts(p_workspace_id text, p_run_id text, p_limit int)
	returns setof autopost.claimed_act
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '100ms'
as $$
-- Purpose: leases due post changes to p_run_id, each with its own token. Each may start within two
--          slot horizons; start_act returns its slot. A rate group without free slots does not
--          delay the others. Post changes of a delivery run one at a time in due order; a removal
--          goes first. A post change with an expired lease is claimed again, because a repeated
--          post change has no further effect.
-- Returns: at most p_limit rows (1 to 1000). No rows is a normal answer.
-- Raises:  AP001 for a wrong argument.
-- Locks:   only with SKIP LOCKED; see take_act.
-- Writes:  post_acts, channels, platform_limits.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_lane text;
	v_id uuid;
	v_ids uuid[] := '{}';
	v_fate text;
begin
	perform autopost.require_argument('run_id', p_run_id <> '');
	perform autopost.require_limit(p_limit);
	if v_status <> 'active' or autopost.is_restored() then
		return;
	end if;
	for v_lane in select l.lane from autopost.act_lanes(p_workspace_id) l where l.next_at <= autopost.now_ts()
		order by l.next_at loop
		for v_id in
			select a.act_id from autopost.post_acts a
			where a.workspace_id = p_workspace_id and a.lane = v_lane and a.status in ('queued', 'sending', 'retry')
				and a.next_at <= autopost.now_ts()
			order by a.next_at, a.act_id
			limit p_limit - cardinality(v_ids)
		loop
			begin
				v_fate := autopost.take_act(p_workspace_id, v_id, p_run_id);
			exception when lock_not_available then
				v_fate := 'later';
			end;
			exit when v_fate = 'full';
			v_ids := case when v_fate = 'taken' then v_ids || v_id else v_ids end;
		end loop;
		exit when cardinality(v_ids) >= p_limit;
	end loop;
	return query
	select p_workspace_id, a.act_id, a.kind, a.attempt, a.claim_token, a.next_at, a.delivery_id, a.message_id,
		a.channel_id, c.platform, c.target_id,
		coalesce(x.auth_ref, c.auth_ref), c.rate_group, coalesce(a.rendered_text, d.rendered_text),
		coalesce(a.render_meta, d.render_meta) || jsonb_build_object('series_progress',
			jsonb_build_object('steps', autopost.sent_ids(d.render_meta, d.provider_message_id,
				row(p.*)::autopost.platforms))),
		m.payload, c.settings, d.trace_id, d.provider_message_id
	from autopost.post_acts a
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = a.delivery_id
	join autopost.messages m on m.workspace_id = p_workspace_id and m.message_id = a.message_id
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = a.channel_id
	join autopost.platforms p on p.platform = c.platform
	left join autopost.channel_auth x on x.workspace_id = p_workspace_id and x.channel_id = a.channel_id
	where a.workspace_id = p_workspace_id and a.act_id = any (v_ids)
	order by a.send_at nulls first, a.act_id;
end
$$;
