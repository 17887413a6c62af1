create or replace function autopost.release_one(p_workspace_id text, p_delivery autopost.deliveries, p_started boolean,
	p_meta jsonb) returns text
language plpgsql
as $$
-- Purpose: ends the claim of a locked delivery by hand and returns its new status. A started call
--          is an unknown outcome; an unstarted attempt is granted again.
-- Writes:  deliveries, channel_gates, events(claimed_lease_expired | released |
--          sending_lease_expired and those of the unknown outcome).
declare
	v_channel autopost.channels;
	v_error jsonb;
begin
	p_delivery.claim_token := null; -- a late commit is then stale
	if p_delivery.status = 'claimed' then
		perform autopost.emit_event(p_workspace_id, 'claimed_lease_expired', 'error', p_delivery, null, p_meta);
		return autopost.finish_attempt(p_workspace_id, p_delivery, 'queued', null, null, null) ->> 'status';
	elsif not p_started then
		update autopost.deliveries d
		set granted_attempts = d.granted_attempts + 1
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
		perform autopost.emit_event(p_workspace_id, 'released', 'ok', p_delivery, null, p_meta);
		return autopost.finish_attempt(p_workspace_id, p_delivery, 'retry', null, autopost.now_ts(), null) ->> 'status';
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_delivery.channel_id;
	v_error := '{"category": "TRANSIENT", "scope": "delivery", "code": "lease_expired", "known": false, "message": "released by hand before an outcome was committed"}';
	perform autopost.emit_event(p_workspace_id, 'sending_lease_expired', 'error', p_delivery, v_error, p_meta);
	-- the process of the call may still run
	return autopost.settle_unknown(p_workspace_id, p_delivery, v_channel, v_error, 15) ->> 'status';
end
$$;

create or replace function autopost.release_stale(p_workspace_id text, p_older_than_seconds int, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: emergency stop for deliveries in claimed or sending longer than p_older_than_seconds (at
--          least 600), also with a valid lease. An unstarted claim is released: due at once, its
--          attempt granted again. A started call is an unknown outcome and follows on_unknown of
--          the channel, after 15 seconds at least. Handles the oldest 500 per call.
-- Returns: {"applied", "dry_run", "released", "unknown", "results": [{"delivery_id", "channel_id",
--          "before", "after", "started"}]}; a dry run changes nothing and has no "after".
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, deliveries, channel_gates.
-- Writes:  deliveries, channel_gates, events(released, claimed_lease_expired,
--          sending_lease_expired, those of the unknown outcome), admin_audit_log.
declare
	v_meta jsonb;
	v_before timestamptz;
	v_ids uuid[];
	v_delivery autopost.deliveries;
	v_started boolean;
	v_after text;
	v_results jsonb := '[]';
	v_counts int[] := '{0, 0}';
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	if coalesce(p_older_than_seconds < 600, true) then
		perform autopost.raise_argument('older_than_seconds', 'must be at least 600',
			'pass 600 or more: a younger call may still be running');
	end if;
	v_before := autopost.now_ts() - make_interval(secs => p_older_than_seconds);
	v_ids := array(
		select d.delivery_id from autopost.in_flight(p_workspace_id) d
		where coalesce(d.sending_started_at, d.claimed_at) < v_before
		order by d.claimed_at
		limit 500);
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false) where not p_dry_run;
	for v_delivery in
		select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids)
		and d.status in ('claimed', 'sending') and coalesce(d.sending_started_at, d.claimed_at) < v_before
		order by d.channel_id, d.delivery_id
	loop
		v_started := v_delivery.status = 'sending' and autopost.call_started_at(v_delivery) is not null;
		if not p_dry_run then
			v_after := autopost.release_one(p_workspace_id, v_delivery, v_started,
				v_meta || jsonb_build_object('from_status', v_delivery.status, 'run_id', v_delivery.claimed_by));
		end if;
		v_results := v_results || jsonb_strip_nulls(jsonb_build_object('delivery_id', v_delivery.delivery_id,
			'channel_id', v_delivery.channel_id,
			'before', v_delivery.status, 'after', v_after, 'started', v_started));
		v_counts := array[v_counts[1] + (not v_started)::int, v_counts[2] + v_started::int];
	end loop;
	if v_results <> '[]' and not p_dry_run then
		perform autopost.audit(p_workspace_id, 'release_stale', 'deliveries', v_meta,
			autopost.changed(v_results, 'delivery_id', 'before'), autopost.changed(v_results, 'delivery_id', 'after'));
	end if;
	return jsonb_build_object('applied', v_results <> '[]', 'dry_run', p_dry_run, 'released', v_counts[1], 'unknown',
		v_counts[2], 'results', v_results);
end
$$;
