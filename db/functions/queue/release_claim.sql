create or replace function autopost.release_claim(p_workspace_id text, p_delivery autopost.deliveries, p_reason text,
	p_error jsonb default null) returns jsonb
language plpgsql
as $$
-- Purpose: returns a locked delivery without a started call to the queue and grants its attempt
--          again. The gates keep the time of the next try.
-- Returns: the answer of a commit.
-- Writes:  deliveries, channel_gates, events (released).
begin
	update autopost.deliveries d
	set granted_attempts = d.granted_attempts + 1
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	perform autopost.emit_event(p_workspace_id, 'released', 'ok', p_delivery, p_error,
		jsonb_build_object('reason', p_reason));
	if p_error is null then
		p_delivery.claim_token := null; -- a late commit with this token is stale
	end if;
	return autopost.finish_attempt(p_workspace_id, p_delivery, 'retry', p_error,
		greatest(p_delivery.due_at, p_delivery.next_retry_at), null);
end
$$;

create or replace function autopost.release_unstarted(p_workspace_id text, p_claim_tokens text[], p_reason text)
	returns jsonb
language plpgsql
as $$
-- Purpose: releases those of these claims whose call did not start.
-- Returns: {"applied": true, "released": n}.
-- Locks:   channels, deliveries, channel_gates.
-- Writes:  as release_claim.
declare
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_released int := 0;
begin
	select array_agg(d.delivery_id) into v_ids from autopost.in_flight(p_workspace_id) d
	where d.status = 'sending' and d.claim_token = any (p_claim_tokens);
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_delivery in
		select d.* from unnest(v_ids) u (id)
		cross join lateral (
			select x.* from autopost.deliveries x
			where x.workspace_id = p_workspace_id and x.delivery_id = u.id limit 1) d
		where d.status = 'sending' and d.claim_token = any (p_claim_tokens)
		order by d.channel_id, d.delivery_id
	loop
		if autopost.call_started_at(v_delivery) is null then
			perform autopost.release_claim(p_workspace_id, v_delivery, p_reason);
			v_released := v_released + 1;
		end if;
	end loop;
	return jsonb_build_object('applied', true, 'released', v_released);
end
$$;
