create or replace function autopost.end_silent_leases(p_workspace_id text, p_now timestamptz) returns void
language plpgsql
as $$
-- Purpose: makes what silent daemons have leased due now (silent_leases). It skips locked rows, so
--          it never waits.
-- Locks:   pull_cursors, submissions, post_acts, credential_health, alert_messages, all with SKIP
--          LOCKED.
-- Writes:  the locked tables.
declare
	v_ids jsonb := (
		select jsonb_object_agg(l.kind, l.ids) from (
			select s.kind, jsonb_agg(s.id) as ids from autopost.silent_leases(p_now, array[p_workspace_id]) s
			group by s.kind) l);
begin
	update autopost.pull_cursors c set next_poll_at = p_now, leased_by = null
	where c.workspace_id = p_workspace_id and c.source_id in (
		select x.source_id from autopost.pull_cursors x
		where x.workspace_id = p_workspace_id and v_ids -> 'source' ? x.source_id
		order by x.source_id for no key update of x skip locked);
	update autopost.submissions s set lease_until = p_now
	where s.workspace_id = p_workspace_id and s.submission_id in (
		select x.submission_id from autopost.submissions x
		where x.workspace_id = p_workspace_id and x.claim_token is not null
			and v_ids -> 'submission' ? x.submission_id::text
		order by x.submission_id for no key update of x skip locked);
	update autopost.post_acts a set next_at = p_now
	where a.workspace_id = p_workspace_id and a.act_id in (
		select x.act_id from autopost.post_acts x
		where x.workspace_id = p_workspace_id and x.status = 'sending' and v_ids -> 'act' ? x.act_id::text
		order by x.act_id for no key update of x skip locked);
	update autopost.credential_health h set lease_until = p_now
	where h.workspace_id = p_workspace_id and h.auth_ref in (
		select x.auth_ref from autopost.credential_health x
		where x.workspace_id = p_workspace_id and x.lease_token is not null and v_ids -> 'credential' ? x.auth_ref
		order by x.auth_ref for no key update of x skip locked);
	update autopost.alert_messages m set lease_until = p_now
	where m.workspace_id = p_workspace_id and m.message_id in (
		select x.message_id from autopost.alert_messages x
		where x.workspace_id = p_workspace_id and x.status = 'sending' and v_ids -> 'message' ? x.message_id::text
		order by x.message_id for no key update of x skip locked);
end
$$;

create or replace function autopost.recover_sending_leases(p_workspace_id text, p_now timestamptz default null)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends expired leases of deliveries, and all leases of runs without a heartbeat: also those
--          of sources, submissions, post changes, renewals and alert messages, which the next claim
--          takes over. An unstarted call is a
--          definite failure for the retry policy. A started one is an unknown outcome, except if
--          the platform can resume it (platforms.resumes). attempt does not change. Up to 500 per
--          call. A clock that jumped or is not confirmed ends no lease.
-- Returns: {"recovered", "unknown", "dead"}, with "waiting": "clock" if the clock is not trusted.
-- Locks:   as end_silent_leases; platform_limits, channels, deliveries, channel_gates; after a jump as
--          follow_clock.
-- Writes:  as end_silent_leases; deliveries, channel_gates, events(sending_lease_expired and those of the failure),
--          clock_observers.
declare
	v_now timestamptz;
	v_silent text[];
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
	v_silent := autopost.silent_runs(v_now);
	perform autopost.end_silent_leases(p_workspace_id, v_now);
	select array_agg(x.delivery_id) into v_ids
	from (
		select d.delivery_id from autopost.in_flight(p_workspace_id) d
		where d.status = 'sending'
		and (d.sending_lease_until <= v_now or d.claimed_by = any (v_silent))
		limit 500) x;
	if v_ids is null then
		return '{"recovered": 0, "unknown": 0, "dead": 0}';
	end if;
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_delivery in
		select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids) and d.status = 'sending'
		and (d.sending_lease_until <= v_now or d.claimed_by = any (v_silent))
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
