create or replace function autopost.requeue_obstacle(p_workspace_id text, p_delivery autopost.deliveries,
	p_channel autopost.channels) returns text
language plpgsql stable
as $$
-- Purpose: the reason why a delivery may not be requeued by hand, or null.
-- Reads:   deliveries, ingest_runs, publish_jobs.
begin
	return (
		select case
			when p_delivery.delivery_id is null then 'unknown_delivery'
			when p_delivery.status not in ('dead', 'failed_permanent') then 'not_failed'
			when p_delivery.last_error ->> 'code' = 'validation_failed' and p_delivery.attempt = 0 then 'never_valid'
			when exists (select 1 from autopost.ingest_runs r
				where r.workspace_id = p_workspace_id and r.run_id = p_delivery.ingest_run_id and r.kind = 'file')
				and not exists (select 1 from autopost.publish_jobs j
				where j.workspace_id = p_workspace_id and j.delivery_id = p_delivery.delivery_id) then 'job_replaced'
			when p_delivery.last_error ->> 'scope' = 'channel'
				and (not p_channel.enabled or p_channel.paused_until > autopost.now_ts()) then 'channel_not_resumed'
			when exists (
				select 1 from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.message_id = p_delivery.message_id
					and d.channel_id = p_delivery.channel_id and d.delivery_id <> p_delivery.delivery_id
				and (d.phase = 'deduped') is false
				and (d.phase in ('active', 'claimed', 'retry')
					or d.phase = 'sent'
						and d.sent_at > autopost.now_ts() - make_interval(hours => coalesce(p_channel.dedup_ttl_hours,
						168)))
			) then 'duplicate' end);
end
$$;

create or replace function autopost.requeue_result(p_delivery_id uuid, p_before text, p_reason text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the result of a requeue of one delivery, with its status before and after.
select jsonb_strip_nulls(jsonb_build_object('delivery_id', p_delivery_id, 'applied', p_reason is null, 'reason',
	p_reason,
	'before', p_before, 'after', case when p_reason is null then 'retry' end))
$$;

create or replace function autopost.lock_for_requeue(p_workspace_id text, p_delivery_ids uuid[]) returns void
language plpgsql
as $$
-- Purpose: locks the rows that a requeue of these deliveries touches. An enqueue of the same
--          content holds its message; the lock waits for it, so that its delivery is visible.
-- Locks:   channels (channel_id), messages (content_hash), deliveries (channel_id, delivery_id), in
--          this order.
begin
	perform autopost.lock_channels(p_workspace_id, array(
		select d.channel_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids)));
	perform 1 from autopost.messages m
	where m.workspace_id = p_workspace_id and m.message_id = any (array(
		select d.message_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids)))
	order by m.hash_version, m.content_hash
	for no key update of m;
	perform autopost.lock_for_commit(p_workspace_id, p_delivery_ids, false);
end
$$;

create or replace function autopost.manual_requeue(p_workspace_id text, p_delivery_ids uuid[], p_operator text,
	p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: dead or failed_permanent -> retry, by an operator. Grants one more attempt and one more
--          unknown outcome; attempt does not change. After a failure of the channel, resume the
--          channel first. The content must not be in flight or sent in the channel meanwhile.
-- Returns: {"applied", "requeued", "results": [{"delivery_id", "applied", "reason", "before",
--          "after"}]} in the order of the ids, each id once.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, messages, deliveries, channel_gates.
-- Writes:  deliveries, channel_gates, events(manual_requeue), admin_audit_log.
declare
	v_id uuid;
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
	v_reason text;
	v_results jsonb := '[]';
	v_count int := 0;
	v_before jsonb := '{}';
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('operator', p_operator <> ''),
		autopost.require_argument('reason', p_reason <> ''),
		autopost.require_argument('delivery_ids', cardinality(p_delivery_ids) > 0);
	perform autopost.lock_for_requeue(p_workspace_id, p_delivery_ids);
	perform set_config('autopost.manual_act', 'manual_requeue', true);
	for v_id in select u.id from unnest(p_delivery_ids) with ordinality u (id, n) group by u.id order by min(u.n) loop
		select d.* into v_delivery from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = v_id;
		select c.* into v_channel from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id;
		v_reason := autopost.requeue_obstacle(p_workspace_id, v_delivery, v_channel);
		if v_reason is null then
			v_now := autopost.now_ts();
			update autopost.deliveries d
			set status = 'retry', next_retry_at = v_now, granted_attempts = d.granted_attempts + 1,
				unknown_allowance = greatest(d.unknown_allowance, d.unknown_outcomes + 1), finished_at = null,
					updated_at = v_now
			where d.workspace_id = p_workspace_id and d.delivery_id = v_id;
			perform autopost.emit_event(p_workspace_id, 'manual_requeue', 'ok', v_delivery, null,
				jsonb_build_object('operator', p_operator, 'reason', p_reason, 'manual', true, 'from_status',
					v_delivery.status));
			v_count := v_count + 1;
			v_before := v_before || jsonb_build_object(v_id, v_delivery.status);
		end if;
		v_results := v_results || autopost.requeue_result(v_id, v_delivery.status, v_reason);
	end loop;
	perform set_config('autopost.manual_act', '', true);
	perform autopost.arm_gates(p_workspace_id, array(select d.channel_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids) and d.status = 'retry'),
			autopost.now_ts());
	if v_count > 0 then
		perform autopost.audit(p_workspace_id, 'manual_requeue', 'deliveries',
			jsonb_build_object('operator', p_operator, 'reason', p_reason),
			v_before, (select jsonb_object_agg(k.key, 'retry') from jsonb_object_keys(v_before) k (key)));
	end if;
	return jsonb_build_object('applied', v_count > 0, 'requeued', v_count, 'results', v_results);
end
$$;
