create or replace function autopost.recover_claimed_leases(p_workspace_id text, p_now timestamptz default null)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns deliveries to the queue that two-phase callers claimed longer than
--          claimed_lease_seconds ago. Up to 500 per call.
-- Returns: {"recovered"}, with "waiting": "clock" if the clock is not trusted (see
--          recover_sending_leases).
-- Locks:   channels, deliveries, channel_gates; after a jump as follow_clock.
-- Writes:  deliveries, channel_gates, events(claimed_lease_expired), clock_observers.
declare
	v_now timestamptz;
	v_before timestamptz;
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_count int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if autopost.follow_clock(p_workspace_id) is not null
		or not autopost.clock_trusted('recovery', autopost.now_ts()) then
		return '{"recovered": 0, "waiting": "clock"}';
	end if;
	v_now := autopost.deciding_now(p_now);
	v_before := v_now - autopost.setting_interval('claimed_lease_seconds');
	select array_agg(x.delivery_id) into v_ids
	from (
		select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.phase = 'claimed' and d.not_before <= v_now
			and d.claimed_at <= v_before
		limit 500) x;
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false) where v_ids is not null;
	for v_delivery in
		select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids) and d.status = 'claimed'
		order by d.channel_id, d.delivery_id
	loop
		perform autopost.emit_event(p_workspace_id, 'claimed_lease_expired', 'error', v_delivery, null,
			jsonb_build_object('run_id', v_delivery.claimed_by));
		v_delivery.claim_token := null; -- a late commit is then stale
		perform autopost.finish_attempt(p_workspace_id, v_delivery, 'queued', null, null, null);
		v_count := v_count + 1;
	end loop;
	return jsonb_build_object('recovered', v_count);
end
$$;
