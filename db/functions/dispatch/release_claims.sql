create or replace function autopost.release_claims(p_workspace_id text, p_claim_tokens text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Hands back what was claimed and not started; the attempt is granted again. A delivery whose call began is not released.
-- Returns {"applied": true, "released": n}. Locks: channels, deliveries, channel_gates. Writes: deliveries, channel_gates, events(released).
declare
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_released int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('claim_tokens', p_claim_tokens is not null);
	select array_agg(d.delivery_id) into v_ids from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.status = 'sending' and d.claim_token = any (p_claim_tokens);
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_delivery in
		select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids) and d.status = 'sending' and d.claim_token = any (p_claim_tokens)
		order by d.channel_id, d.delivery_id
	loop
		if autopost.call_started_at(v_delivery) is null then
			perform autopost.hand_back(p_workspace_id, v_delivery, 'released');
			v_released := v_released + 1;
		end if;
	end loop;
	return jsonb_build_object('applied', true, 'released', v_released);
end
$$;
