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

create or replace function autopost.hand_back_unbegun(p_workspace_id text, p_claim_tokens text[], p_reason text) returns jsonb
language plpgsql
as $$
-- Hands back those of these claims whose call did not begin. Returns {"applied": true, "released": n}.
-- Locks: channels, deliveries, channel_gates. Writes: as hand_back.
declare
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_released int := 0;
begin
	select array_agg(d.delivery_id) into v_ids from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.status = 'sending' and d.claim_token = any (p_claim_tokens);
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_delivery in
		select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids) and d.status = 'sending' and d.claim_token = any (p_claim_tokens)
		order by d.channel_id, d.delivery_id
	loop
		if autopost.call_started_at(v_delivery) is null then
			perform autopost.hand_back(p_workspace_id, v_delivery, p_reason);
			v_released := v_released + 1;
		end if;
	end loop;
	return jsonb_build_object('applied', true, 'released', v_released);
end
$$;
