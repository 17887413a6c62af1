create or replace function autopost.resolve_unknown(
	p_workspace_id text, p_delivery_id uuid, p_verdict text, p_provider_message_id text, p_operator text, p_reason text
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: settles a delivery that waits because of an unknown outcome. found: the platform has the first
--          missing message, with this id; the delivery is sent, or goes on with the next message.
--          absent: back into the queue; the next call uses its one further allowance. operator and
--          reason are required and kept in the event.
-- Returns: {"applied": true, "status"} or {"applied": false, "reason": "not_unknown" |
--          "unknown_delivery"}.
-- Locks:   channels, deliveries, channel_gates.
-- Writes:  deliveries, channels, channel_gates, events (unknown_resolved, sent), admin_audit_log.
declare
	v_delivery autopost.deliveries;
	v_missing jsonb;
	v_meta jsonb := jsonb_build_object('operator', p_operator, 'reason', p_reason, 'verdict', p_verdict);
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_id', p_delivery_id is not null),
		autopost.require_argument('operator', p_operator <> ''), autopost.require_argument('reason', p_reason <> '');
	if coalesce(p_verdict not in ('found', 'absent'), true) then
		perform autopost.raise_argument('verdict', 'must be found or absent', 'pass what the platform shows');
	end if;
	perform autopost.require_argument('provider_message_id', p_verdict <> 'found' or p_provider_message_id <> '');
	perform autopost.lock_for_commit(p_workspace_id, array[p_delivery_id], false);
	select d.* into v_delivery from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	if v_delivery.delivery_id is null then
		return '{"applied": false, "reason": "unknown_delivery"}';
	elsif v_delivery.status <> 'retry' or v_delivery.unknown_outcomes = 0 then
		return jsonb_build_object('applied', false, 'reason', 'not_unknown', 'status', v_delivery.status);
	end if;
	v_missing := autopost.parts_missing(v_delivery.render_meta);
	if p_verdict = 'found' and v_missing <> '[]' then
		update autopost.deliveries d
		set render_meta = autopost.with_progress(d.render_meta, jsonb_build_object(v_missing ->> 0,
			jsonb_build_array(p_provider_message_id)))
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id
		returning d.* into v_delivery;
		p_provider_message_id := v_delivery.render_meta #>> '{series_progress,provider_message_ids,0}';
	end if;
	perform autopost.emit_event(p_workspace_id, 'unknown_resolved', 'ok', v_delivery, null, v_meta);
	perform autopost.audit(p_workspace_id, 'resolve_unknown', 'deliveries', v_meta,
		jsonb_build_object(p_delivery_id, 'retry'),
		jsonb_build_object(p_delivery_id, case when p_verdict = 'found' and jsonb_array_length(v_missing) < 2
			then 'sent' else 'retry' end));
	if p_verdict = 'found' and jsonb_array_length(v_missing) < 2 then
		perform set_config('autopost.manual_act', 'resolve_unknown', true);
		perform autopost.settle_sent(p_workspace_id, v_delivery, p_provider_message_id, v_meta);
		perform set_config('autopost.manual_act', '', true);
		return '{"applied": true, "status": "sent"}';
	end if;
	v_now := autopost.now_ts();
	update autopost.deliveries d
	set next_retry_at = v_now, updated_at = v_now
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	perform autopost.rearm_gate(p_workspace_id, v_delivery.channel_id, 0);
	return '{"applied": true, "status": "retry"}';
end
$$;
