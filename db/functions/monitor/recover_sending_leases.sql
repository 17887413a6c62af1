create or replace function autopost.recover_sending_leases(p_workspace_id text, p_now timestamptz default null)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends expired leases and those of runs without a heartbeat. An unstarted call is a
--          definite failure for the retry policy. A started one is an unknown outcome, except if
--          the platform can resume it (platforms.resumes). attempt does not change. Up to 500 per
--          call. A clock that jumped or is not confirmed ends no lease.
-- Returns: {"recovered", "unknown", "dead"}, with "waiting": "clock" if the clock is not trusted.
-- Locks:   platform_limits, channels, deliveries, channel_gates; after a jump as follow_clock.
-- Writes:  deliveries, channel_gates, events(sending_lease_expired and those of the failure),
--          clock_observers.
declare
	v_now timestamptz;
	v_silence interval := autopost.run_silence();
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
	v_error jsonb;
	v_answer jsonb;
	v_counts int[] := '{0, 0, 0}';
begin
	perform autopost.enter_workspace(p_workspace_id);
	if autopost.follow_clock(p_workspace_id) is not null
		or not autopost.clock_trusted('recovery', autopost.now_ts()) then
		return '{"recovered": 0, "unknown": 0, "dead": 0, "waiting": "clock"}';
	end if;
	v_now := autopost.deciding_now(p_now);
	select array_agg(x.delivery_id) into v_ids
	from (
		select d.delivery_id from autopost.deliveries d
		left join autopost.dispatch_runs r on r.run_id = d.claimed_by
		where d.workspace_id = p_workspace_id and d.status = 'sending'
		and (d.sending_lease_until <= v_now or r.seen_at <= v_now - v_silence)
		limit 500) x;
	if v_ids is null then
		return '{"recovered": 0, "unknown": 0, "dead": 0}';
	end if;
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_delivery in
		select d.* from autopost.deliveries d
		left join autopost.dispatch_runs r on r.run_id = d.claimed_by
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids) and d.status = 'sending'
		and (d.sending_lease_until <= v_now or r.seen_at <= v_now - v_silence)
		order by d.channel_id, d.delivery_id
	loop
		select c.* into v_channel from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id;
		v_error := jsonb_build_object('category', 'TRANSIENT', 'scope', 'delivery', 'code', 'lease_expired',
			'known', autopost.call_started_at(v_delivery) is null
				or (select f.resumes from autopost.platforms f where f.platform = v_channel.platform), 'message',
				'the lease ran out before an outcome was committed');
		perform autopost.emit_event(p_workspace_id, 'sending_lease_expired', 'error', v_delivery, v_error,
			jsonb_build_object('run_id', v_delivery.claimed_by));
		v_delivery.claim_token := null; -- a late commit is then stale
		v_answer := case when v_error -> 'known' = 'false'
			then autopost.settle_unknown(p_workspace_id, v_delivery, v_channel, v_error)
			else autopost.settle_transient(p_workspace_id, v_delivery, v_channel, v_error, null) end;
		v_counts := array[v_counts[1] + 1, v_counts[2] + (v_error -> 'known' = 'false')::int,
			v_counts[3] + (v_answer ->> 'status' = 'dead')::int];
	end loop;
	return jsonb_build_object('recovered', v_counts[1], 'unknown', v_counts[2], 'dead', v_counts[3]);
end
$$;
