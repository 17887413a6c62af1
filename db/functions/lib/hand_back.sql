create or replace function autopost.hand_back(p_workspace_id text, p_delivery autopost.deliveries, p_reason text) returns void
language plpgsql
as $$
-- A locked delivery whose call did not begin returns to its place in the queue, and the attempt is granted again: what was in the way is
-- kept by the gates.
-- Writes: deliveries, channel_gates, events(released).
begin
	update autopost.deliveries d
	set granted_attempts = d.granted_attempts + 1
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	perform autopost.emit_event(p_workspace_id, 'released', 'ok', p_delivery, null, jsonb_build_object('reason', p_reason));
	p_delivery.claim_token := null; -- no commit settled it: one that comes late is stale
	perform autopost.leave_flight(p_workspace_id, p_delivery, 'retry', null, greatest(p_delivery.due_at, p_delivery.next_retry_at), null);
end
$$;
