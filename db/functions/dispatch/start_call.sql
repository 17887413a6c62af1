create or replace function autopost.start_obstacle(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_slot timestamptz, p_now timestamptz
) returns text
language sql stable
as $$
-- Why no call of this channel may begin now, or at its slot; null when nothing is in the way. The gates wait for it to end, the row does not: a person
-- may end it sooner.
select case
	when p_status <> 'active' then 'workspace'
	when not p_channel.enabled then 'disabled'
	when p_channel.paused_until > p_now then 'paused'
	when greatest(p_channel.cooldown_until, p_limit.cooldown_until) > p_now then 'rate'
	when p_slot = 'infinity' then 'rate' -- late, and no slot is free within the horizon
	when autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, greatest(p_slot, p_now)) > greatest(p_slot, p_now) then 'window' end
$$;

create or replace function autopost.begin_call(p_workspace_id text, p_delivery autopost.deliveries, p_send_at timestamptz) returns jsonb
language plpgsql
as $$
-- Records that the call of this attempt begins: the send_attempt event is what recovery looks for.
-- Writes: events(send_attempt).
begin
	perform autopost.emit_event(p_workspace_id, 'send_attempt', 'ok', p_delivery, null,
		jsonb_build_object('idempotency_key', p_delivery.delivery_id, 'run_id', p_delivery.claimed_by, 'send_at', p_send_at));
	return jsonb_build_object('applied', true, 'now', autopost.now_ts(), 'send_at', p_send_at,
		'deadline', p_delivery.sending_lease_until - autopost.setting_interval('lease_margin_seconds') * least(1, extract(epoch from p_delivery.sending_lease_until - p_delivery.claimed_at) / 60));
end
$$;

create or replace function autopost.start_call(p_workspace_id text, p_delivery_id uuid, p_claim_token text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Committed just before the first byte of a call: checks the claim, the lease, workspace, channel and group once more, confirms the
-- reserved slot or takes a new one, and records that the call began. Repeatable with the same token; who is late for the slot of a
-- call that is recorded already gets the next one.
-- Returns {"applied": true, "send_at", "deadline", "now": the database's clock} or {"applied": false, "reason": "stale" | "paused" | "disabled" | "workspace" |
-- "window" | "rate"}, and then the row has been handed back already ("stale": it was not the caller's any more).
-- Locks, in this order: platform_limits if a new slot is needed, channels (shared), deliveries, channel_gates.
-- Writes: events(send_attempt | released), channels and platform_limits for a new slot, deliveries when handed back.
declare
	v_status text;
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
	v_obstacle text;
	v_now timestamptz;
	v_slot timestamptz;
	v_late boolean;
	v_began boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('delivery_id', p_delivery_id is not null), autopost.require('claim_token', p_claim_token <> '');
	select d.* into v_delivery from autopost.deliveries d where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	v_began := autopost.call_started_at(v_delivery) is not null;
	v_late := v_delivery.send_at < autopost.now_ts() - autopost.setting_interval('slot_tolerance_ms')
		and v_delivery.status = 'sending' and v_delivery.claim_token = p_claim_token;
	if v_late then
		v_slot := autopost.take_slot(p_workspace_id, v_delivery.channel_id, autopost.step_cost(v_delivery.render_meta),
			case when v_began then 'infinity' else autopost.now_ts() + autopost.setting_interval('slot_horizon_ms') end);
	end if;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id
	for share of c;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group;
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id
	for no key update of d;
	v_now := autopost.now_ts();
	v_status := (select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id); -- it may have been paused while a lock was waited for
	if v_delivery.status is distinct from 'sending' or v_delivery.claim_token is distinct from p_claim_token or v_delivery.sending_lease_until <= v_now then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_began := autopost.call_started_at(v_delivery) is not null;
	v_obstacle := autopost.start_obstacle(v_status, v_channel, v_limit, coalesce(v_slot, v_delivery.send_at), v_now);
	if v_obstacle is not null and not v_began then
		perform autopost.hand_back(p_workspace_id, v_delivery, v_obstacle);
		return jsonb_build_object('applied', false, 'reason', v_obstacle);
	end if;
	if v_late then
		update autopost.deliveries d
		set send_at = v_slot
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
		v_delivery.send_at := v_slot;
	end if;
	if v_began then
		return jsonb_build_object('applied', true, 'repeated', true, 'now', v_now, 'send_at', v_delivery.send_at, 'deadline', v_delivery.sending_lease_until);
	end if;
	return autopost.begin_call(p_workspace_id, v_delivery, v_delivery.send_at);
end
$$;

create or replace function autopost.start_call_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- start_call for many deliveries. p_items: [{"delivery_id", "claim_token"}]. Everything that may be needed is locked first, in the
-- order of the house. Returns an array of its answers in the same order.
declare
	v_answers jsonb := '[]';
	v_item jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('items', jsonb_typeof(p_items) = 'array');
	perform autopost.require_uuid('delivery_id', i.value ->> 'delivery_id') from jsonb_array_elements(p_items) i;
	perform autopost.lock_for_commit(p_workspace_id, array(select (i.value ->> 'delivery_id')::uuid from jsonb_array_elements(p_items) i), true);
	for v_item in select i.value from jsonb_array_elements(p_items) i loop
		v_answers := v_answers || autopost.start_call(p_workspace_id, (v_item ->> 'delivery_id')::uuid, v_item ->> 'claim_token');
	end loop;
	return v_answers;
end
$$;
