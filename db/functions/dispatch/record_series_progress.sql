create or replace function autopost.record_series_progress(p_workspace_id text, p_delivery_id uuid, p_claim_token text,
	p_delta jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records an acknowledged step, so that no retry repeats it, renews the lease and reserves
--          the slot of the next step, unless both steps share one. A started delivery is finished
--          even if that slot is after the end of the posting window. p_delta: {"step", "ids":
--          ["…"], "items": [0]}. A recorded step does not change: repeatable.
-- Returns: {"applied": true, "send_at", "lease_until", "now"} or {"applied": false, "reason":
--          "stale"}: stop, the claim is over. A step from a stale caller is still recorded while
--          the delivery is not final, because the platform has it.
-- Locks:   platform_limits and channels if limited, deliveries, in this order.
-- Writes:  the locked tables.
declare
	v_delivery autopost.deliveries;
	v_step jsonb := jsonb_build_object(coalesce(p_delta ->> 'step', ''), p_delta -> 'ids');
	v_slot timestamptz;
	v_lease timestamptz;
	v_holds boolean;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_id', p_delivery_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	if coalesce(p_delta ->> 'step', '') = '' or jsonb_typeof(p_delta -> 'ids') is distinct from 'array' then
		perform autopost.raise_argument('delta', 'has no step or no ids',
			'pass {"step": "media-1", "ids": ["…"], "items": [0]}');
	end if;
	select d.* into v_delivery from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	if v_delivery.status = 'sending' and v_delivery.claim_token = p_claim_token
		and not autopost.shares_slot(v_delivery.render_meta, p_delta ->> 'step') then
		v_slot := autopost.reserve_slot(p_workspace_id, v_delivery.channel_id,
			autopost.step_cost(autopost.with_progress(v_delivery.render_meta, v_step)));
	end if;
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id
	for no key update of d;
	v_holds := v_delivery.status = 'sending' and v_delivery.claim_token = p_claim_token;
	if v_holds or v_delivery.status in ('queued', 'claimed', 'retry', 'sending') then
		v_lease := case when v_holds then greatest(v_delivery.sending_lease_until,
			greatest(v_slot, autopost.now_ts()) + autopost.setting_interval('sending_lease_seconds'))
				else v_delivery.sending_lease_until end;
		v_now := autopost.now_ts();
		update autopost.deliveries d
		set render_meta = autopost.with_progress(d.render_meta, v_step), sending_lease_until = v_lease,
			updated_at = v_now
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	end if;
	if not coalesce(v_holds, false) then
		return '{"applied": false, "reason": "stale"}';
	end if;
	return jsonb_build_object('applied', true, 'now', autopost.now_ts(), 'send_at', v_slot, 'lease_until', v_lease);
end
$$;
