create or replace function autopost.hand_back(p_workspace_id text, p_delivery autopost.deliveries, p_reason text, p_until timestamptz) returns void
language plpgsql
as $$
-- A locked delivery whose call did not begin returns to the queue until p_until, and the attempt is granted again.
-- Writes: deliveries, channel_gates, events(released).
declare
	v_until timestamptz := least(greatest(p_until, autopost.now_ts()), autopost.now_ts() + interval '1 day');
begin
	update autopost.deliveries d
	set granted_attempts = d.granted_attempts + 1
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	perform autopost.emit_event(p_workspace_id, 'released', 'ok', p_delivery, null, jsonb_build_object('reason', p_reason, 'until', v_until));
	p_delivery.claim_token := null; -- no commit settled it: one that comes late is stale
	perform autopost.leave_flight(p_workspace_id, p_delivery, 'retry', null, v_until, null);
end
$$;
