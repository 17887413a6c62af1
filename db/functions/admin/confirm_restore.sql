create or replace function autopost.doubt_delivery(p_workspace_id text, p_delivery autopost.deliveries) returns void
language plpgsql
as $$
-- Purpose: settles a locked delivery as a call with an unknown outcome: the original may have sent
--          it after the backup. A waiting one is taken first, as by a claim. The original may have
--          sent that at any time since it was due, so the platform is asked for posts since then, or
--          since an earlier call whose outcome is unknown.
-- Writes:  deliveries, channel_gates, channels_in_flight, events, as settle_unknown.
declare
	v_channel autopost.channels;
	v_now timestamptz := autopost.now_ts();
	v_token text := autopost.new_id();
	v_since timestamptz := least(case when p_delivery.status <> 'sending' then p_delivery.due_at end,
		case when p_delivery.unknown_outcomes > 0 then p_delivery.last_call_at end);
begin
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_delivery.channel_id;
	if p_delivery.status <> 'sending' then
		update autopost.deliveries d
		set status = 'sending', attempt = d.attempt + 1, claimed_at = v_now, claimed_by = 'restore',
			claim_token = v_token, sending_started_at = v_now, sending_lease_until = v_now,
			call_begun_at = null, updated_at = v_now
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id
		returning d.* into p_delivery;
		update autopost.channel_gates g set inflight = g.inflight + 1, listed = true
		where g.workspace_id = p_workspace_id and g.channel_id = p_delivery.channel_id;
		perform autopost.list_in_flight(p_workspace_id, array[p_delivery.channel_id]);
	end if;
	p_delivery.claim_token := null; -- a late commit is then stale
	perform autopost.settle_unknown(p_workspace_id, p_delivery, v_channel, jsonb_build_object('category', 'TRANSIENT',
		'scope', 'delivery', 'code', 'restored', 'known', false,
		'message', 'the database was restored from a backup: the post may have been sent since'));
	update autopost.deliveries d
	set last_call_at = least(d.last_call_at, v_since)
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
end
$$;

create or replace function autopost.doubtful_deliveries(p_workspace_id text, p_noticed_at timestamptz,
	p_limit int) returns uuid[]
language plpgsql stable
as $$
-- Purpose: deliveries that were due or in flight before the restored copy was noticed and are not
--          settled as unknown yet. Paused and disabled channels sent nothing.
-- Reads:   deliveries, channels.
begin
	return array(
		select d.delivery_id from autopost.channels c
		cross join lateral (
			select x.delivery_id from autopost.deliveries x
			where x.workspace_id = p_workspace_id and x.channel_id = c.channel_id
			and x.phase in ('active', 'retry')
			and coalesce(x.claimed_at, x.due_at) <= p_noticed_at and x.created_at <= p_noticed_at
			and coalesce(x.outcome_unknown_at < p_noticed_at, true)
			limit p_limit) d
		where c.workspace_id = p_workspace_id and c.enabled
		and coalesce(greatest(c.paused_until, c.cooldown_until), '-infinity') <= p_noticed_at
		order by d.delivery_id
		limit p_limit);
end
$$;

create or replace function autopost.confirm_restore(p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lets a restored copy send. What was due or in flight when the copy was noticed may have
--          been sent since the backup, so its outcome is unknown and on_unknown of its channel
--          decides. Up to 1,000 deliveries per call: repeat it while "more" is true; the last call
--          lets the copy send. Only the engine may call it.
-- Returns: {"applied": true, "dry_run", "unknown": deliveries, "more"}; or {"applied": false,
--          "dry_run", "reason": "not_restored"}.
-- Raises:  AP001 without operator or reason.
-- Locks:   platform_limits, channels, deliveries, channel_gates, per workspace in the order of ids.
-- Writes:  cluster_identity, deliveries, channel_gates, events, admin_audit_log.
declare
	v_act jsonb;
	v_noticed_at timestamptz;
	v_workspace_id text;
	v_log text;
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_count int := 0;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	if not autopost.is_restored() then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'not_restored');
	end if;
	v_noticed_at := (select coalesce(i.noticed_at, autopost.now_ts()) from autopost.cluster_identity i);
	v_log := autopost.operator_workspace();
	for v_workspace_id in
		select w.workspace_id from autopost.workspaces w order by w.workspace_id
	loop
		perform autopost.enter_workspace(v_workspace_id);
		v_ids := autopost.doubtful_deliveries(v_workspace_id, v_noticed_at, 1001 - v_count);
		v_count := v_count + cardinality(v_ids);
		exit when v_count > 1000;
		if not p_dry_run and v_ids <> '{}' then
			perform autopost.lock_for_commit(v_workspace_id, v_ids, true);
			perform autopost.lock_gates(v_workspace_id, array(select distinct d.channel_id from autopost.deliveries d
				where d.workspace_id = v_workspace_id and d.delivery_id = any (v_ids)));
			for v_delivery in
				select d.* from autopost.deliveries d
				where d.workspace_id = v_workspace_id and d.delivery_id = any (v_ids)
				order by d.channel_id, d.delivery_id
			loop
				perform autopost.doubt_delivery(v_workspace_id, v_delivery);
			end loop;
		end if;
	end loop;
	if not p_dry_run and v_count <= 1000 then
		v_now := autopost.now_ts();
		update autopost.cluster_identity i
		set system_identifier = autopost.this_cluster(), noticed_at = null, confirmed_at = v_now;
		if v_log is not null then
			perform autopost.enter_workspace(v_log);
			perform autopost.audit(v_log, 'confirm_restore', 'installation', v_act, '{}',
				jsonb_build_object('unknown', v_count));
		end if;
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'unknown', least(v_count, 1000), 'more',
		v_count > 1000);
end
$$;
