create or replace function autopost.start_act(p_workspace_id text, p_act_id uuid, p_claim_token text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commit it just before the call of a post change. It checks claim, workspace, channel and
--          group again, and confirms the slot; a late call gets the next slot. Repeatable with the
--          same token.
-- Returns: {"applied": true, "send_at", "deadline", "now": the database's clock} or {"applied":
--          false, "reason": "stale" | "workspace" | "waits"}. After a refusal the post change is
--          released and its attempt is not counted; "stale" means that another claim has it.
-- Locks:   platform_limits and channels for a new slot, post_acts, in this order.
-- Writes:  post_acts, platform_limits, channels.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_act autopost.post_acts;
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
	v_delivery autopost.deliveries;
	v_slot timestamptz;
	v_now timestamptz;
	v_later timestamptz;
begin
	perform autopost.require_argument('act_id', p_act_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	select a.* into v_act from autopost.post_acts a where a.workspace_id = p_workspace_id and a.act_id = p_act_id
		and a.claim_token = p_claim_token;
	v_slot := v_act.send_at;
	if v_slot < autopost.now_ts() - autopost.slot_tolerance() then
		select d.* into v_delivery from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = v_act.delivery_id;
		v_slot := autopost.reserve_slot(p_workspace_id, v_act.channel_id, autopost.act_cost(v_act, v_delivery));
	end if;
	select a.* into v_act from autopost.post_acts a
	where a.workspace_id = p_workspace_id and a.act_id = p_act_id and a.claim_token = p_claim_token
	for no key update of a;
	v_now := autopost.now_ts();
	if v_act.act_id is null or v_act.next_at <= v_now then
		return '{"applied": false, "reason": "stale"}';
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = v_act.channel_id;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group;
	v_later := case when v_status <> 'active' then v_now + interval '30 seconds'
		else autopost.act_obstacle_until(v_channel, v_limit, v_now) end;
	if v_later is not null then
		update autopost.post_acts a
		set status = 'retry', attempt = a.attempt - 1, next_at = v_later, claim_token = null, claimed_by = null,
			send_at = null, updated_at = v_now
		where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
		return jsonb_build_object('applied', false, 'reason', case when v_status <> 'active' then 'workspace'
			else 'waits' end);
	end if;
	update autopost.post_acts a
	set send_at = v_slot, started_at = coalesce(a.started_at, v_now), updated_at = v_now
	where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'now', v_now, 'send_at', v_slot,
		'deadline', autopost.call_deadline(v_act.next_at, v_now, autopost.setting_interval('lease_margin_seconds'))));
end
$$;
