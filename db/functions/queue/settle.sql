create or replace function autopost.lock_groups(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: locks the existing rate groups of channels.
-- Locks:   platform_limits (platform, rate_group).
begin
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id
	and (l.platform, l.rate_group) in (select c.platform, c.rate_group from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids))
	order by l.platform, l.rate_group
	for no key update of l;
end
$$;

create or replace function autopost.lock_deliveries(p_workspace_id text, p_ids uuid[]) returns void
language plpgsql
as $$
-- Purpose: locks deliveries in order, by probes as in lock_channels.
-- Locks:   deliveries (channel_id, delivery_id).
begin
	perform 1 from (
		select u.id from (select distinct x.id from unnest(p_ids) x (id)) u
		cross join lateral (
			select d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
		order by d.channel_id, u.id) k
	cross join lateral (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = k.id limit 1
		for no key update of d) l;
end
$$;

create or replace function autopost.delivery_channels(p_workspace_id text, p_ids uuid[]) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels of deliveries, in order, by one probe each.
-- Reads:   deliveries.
begin
	return array(
		select distinct d.channel_id from unnest(p_ids) u (id)
		cross join lateral (
			select d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
		order by d.channel_id);
end
$$;

create or replace function autopost.lock_for_settling(p_workspace_id text, p_delivery_ids uuid[], p_with_groups boolean,
	p_moved text[]) returns void
language plpgsql
as $$
-- Purpose: locks everything that settling these deliveries may change, in the common order.
--          p_moved: chats with a new id; their channels are locked against new deliveries, because
--          the target is part of a key.
-- Locks:   platform_limits if p_with_groups (added if missing), channels (channel_id), deliveries
--          (channel_id, delivery_id), in this order.
declare
	v_channels text[] := autopost.delivery_channels(p_workspace_id, p_delivery_ids);
begin
	if p_with_groups then
		insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
		select c.workspace_id, c.platform, c.rate_group, autopost.platform_rate(c.platform) from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_channels)
		group by c.workspace_id, c.platform, c.rate_group
		order by c.platform, c.rate_group
		on conflict (workspace_id, platform, rate_group) do nothing;
		perform autopost.lock_groups(p_workspace_id, v_channels);
	end if;
	if cardinality(p_moved) > 0 then
		perform 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and (c.channel_id = any (v_channels)
			or split_part(c.target_id, ':', 1) = any (p_moved))
		order by c.channel_id
		for update of c;
	else
		perform autopost.lock_channels(p_workspace_id, v_channels);
	end if;
	perform autopost.lock_deliveries(p_workspace_id, p_delivery_ids);
end
$$;

create or replace function autopost.lock_for_commit(p_workspace_id text, p_delivery_ids uuid[],
	p_with_groups boolean) returns void
language plpgsql
as $$
-- Purpose: lock_for_settling without moved chats.
begin
	perform autopost.lock_for_settling(p_workspace_id, p_delivery_ids, p_with_groups, '{}');
end
$$;

create or replace function autopost.call_started_at(p_delivery autopost.deliveries) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: when the call of the current claim started, the time of its send_attempt; null if it did
--          not start.
select case when p_delivery.status = 'sending' then p_delivery.call_begun_at end
$$;

create or replace function autopost.late_start(p_delivery_id uuid, p_trace_id uuid) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the meta of a send_attempt that the commit writes because start_call was left out.
select jsonb_build_object('idempotency_key', p_delivery_id, 'trace_id', p_trace_id, 'told', 'late')
$$;

create or replace function autopost.record_late_start(p_workspace_id text, p_delivery autopost.deliveries) returns void
language plpgsql
as $$
-- Purpose: records the start of a call without start_call, at the time of its claim.
-- Writes:  deliveries, events (send_attempt).
begin
	update autopost.deliveries d
	set call_begun_at = d.claimed_at
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id;
	insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
		meta)
	values (p_workspace_id, autopost.new_id(), p_delivery.delivery_id, p_delivery.message_id, p_delivery.channel_id,
		p_delivery.claimed_at, 'send_attempt',
		p_delivery.attempt, 'ok', autopost.late_start(p_delivery.delivery_id, p_delivery.trace_id));
end
$$;

create or replace function autopost.sent_answer(p_attempt int) returns jsonb
language sql stable parallel safe -- immutable would not be inlined
as $$
-- Purpose: the answer to a commit that moved a delivery to sent. It is not stored, because sent is
--          final.
select jsonb_build_object('applied', true, 'status', 'sent', 'attempt', p_attempt)
$$;

create or replace function autopost.sent_answers(p_attempts int[]) returns jsonb
language sql stable parallel safe -- immutable would not be inlined
as $$
-- Purpose: an array with sent_answer of each. One JSON text is much faster than an object for each row.
select ('[{"applied": true, "status": "sent", "attempt": '
	|| array_to_string(p_attempts, '}, {"applied": true, "status": "sent", "attempt": ') || '}]')::jsonb
$$;

create or replace function autopost.sent_meta(p_post text, p_trace_id uuid, p_raw jsonb, p_sent_at jsonb) returns jsonb
language sql stable parallel safe -- immutable would not be inlined
as $$
-- Purpose: the meta of the event of a sent post, with the answer of the platform, redacted. jsonb_object as in
--          start_meta. A time alone needs no search for secrets.
select jsonb_object(case when p_trace_id is null then array['provider_message_id', p_post]
		else array['provider_message_id', p_post, 'trace_id', p_trace_id::text] end)
	|| case when coalesce(p_raw, p_sent_at) is null then '{"raw": {}}'
		when p_raw is null and p_sent_at #>> '{}' like '____-__-__T__:__:__%' and length(p_sent_at #>> '{}') <= 35
			then ('{"raw": {"sent_at": ' || p_sent_at::text || '}}')::jsonb
		else jsonb_build_object('raw',
			autopost.redact(jsonb_strip_nulls(jsonb_build_object('sent_at', p_sent_at, 'raw', p_raw)))) end
$$;

create or replace function autopost.start_meta(p_delivery_id uuid, p_run_id text, p_send_at timestamptz,
	p_trace_id uuid) returns jsonb
language sql stable parallel safe -- immutable would not be inlined
as $$
-- Purpose: the meta of a send_attempt. jsonb_object of texts is faster than jsonb_build_object.
select case when p_trace_id is null then jsonb_object(array['idempotency_key', p_delivery_id::text, 'run_id', p_run_id])
	else jsonb_object(array['idempotency_key', p_delivery_id::text, 'run_id', p_run_id, 'trace_id', p_trace_id::text]) end
	|| case when p_send_at is null then '{}' else jsonb_object(array['send_at', to_jsonb(p_send_at) #>> '{}']) end
$$;

create or replace function autopost.stale_commit(p_workspace_id text, p_delivery autopost.deliveries,
	p_claim_token text, p_what text) returns jsonb
language plpgsql
as $$
-- Purpose: the answer to a commit of an ended claim: the stored answer if this claim was settled,
--          else a refusal with an event.
-- Writes:  events (stale_commit).
begin
	if p_delivery.settled ->> 'token' = p_claim_token then
		return coalesce(p_delivery.settled -> 'answer', autopost.sent_answer(p_delivery.attempt)) || '{"repeated": true}';
	end if;
	if p_delivery.delivery_id is null then
		return jsonb_build_object('applied', false, 'reason', 'unknown_delivery');
	end if;
	perform autopost.emit_event(p_workspace_id, 'stale_commit', 'error', p_delivery, null,
		jsonb_build_object('call', p_what, 'status', p_delivery.status));
	return jsonb_build_object('applied', false, 'reason', 'stale', 'status', p_delivery.status);
end
$$;

create or replace function autopost.finish_attempt(
	p_workspace_id text, p_delivery autopost.deliveries, p_status text, p_error jsonb, p_next_retry_at timestamptz,
		p_provider_message_id text
) returns jsonb
language plpgsql
as $$
-- Purpose: moves a locked delivery in flight to p_status, releases its place, and stores the answer
--          for a repeated commit. A sent delivery without start_call gets its send_attempt.
-- Returns: the answer of the commit.
-- Locks:   channel_gates.
-- Writes:  deliveries, channel_gates, events (send_attempt).
declare
	v_now timestamptz := autopost.now_ts();
	v_call_at timestamptz := autopost.call_started_at(p_delivery);
	v_was_sending int := (p_delivery.status = 'sending')::int;
	v_answer jsonb := jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', p_status,
		'attempt', p_delivery.attempt, 'next_retry_at', p_next_retry_at, 'payload_ref', p_error -> 'payload_ref'));
	v_settled jsonb := case when p_delivery.claim_token is not null then jsonb_strip_nulls(jsonb_build_object(
		'token', p_delivery.claim_token, 'answer', case when p_status <> 'sent' then v_answer end)) end;
begin
	if p_status = 'sent' and p_delivery.status = 'sending' and v_call_at is null then
		perform autopost.record_late_start(p_workspace_id, p_delivery);
		v_call_at := p_delivery.claimed_at;
		p_delivery.call_begun_at := v_call_at;
	end if;
	if p_delivery.quota_held then
		perform autopost.settle_quota(p_workspace_id, p_delivery, p_status, p_error),
			autopost.settle_charge(p_workspace_id, p_delivery, p_status, p_error);
	end if;
	update autopost.deliveries d
	set status = p_status, quota_held = false,
		claimed_at = null, claimed_by = null, claim_token = null, sending_started_at = null, sending_lease_until = null,
			send_at = null,
		-- After an unknown outcome it stays the time of that call, whatever failed later.
		last_call_at = case when p_status = 'sent' or d.unknown_outcomes = 0 or p_error -> 'known' = 'false'
			then coalesce(v_call_at, d.last_call_at) else d.last_call_at end,
		last_error = coalesce(p_error - 'payload_ref', d.last_error),
		next_retry_at = p_next_retry_at,
		provider_message_id = coalesce(p_provider_message_id, d.provider_message_id),
		sent_at = case when p_status = 'sent' then v_now end,
		finished_at = case when p_status in ('sent', 'failed_permanent', 'dead') then v_now end,
		settled = v_settled,
		updated_at = v_now
	where d.workspace_id = p_workspace_id
	and d.delivery_id = p_delivery.delivery_id;
	perform autopost.rearm_gate(p_workspace_id, p_delivery.channel_id, v_was_sending);
	return v_answer;
end
$$;

create or replace function autopost.is_marked(p_error_streak int, p_limited_rps numeric,
	p_credential_missing_at timestamptz) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a sent post changes the state of its channel (speed_up).
select p_error_streak <> 0 or p_limited_rps is not null or p_credential_missing_at is not null
$$;

create or replace function autopost.speed_up(p_workspace_id text, p_channel_ids text[], p_counts int[]) returns void
language plpgsql
as $$
-- Purpose: counts p_counts sent posts for the state of each channel: the error_streak ends, the credential
--          is not missing, and a channel that a limit slowed down gets faster (effective_rps) until it
--          has its own rate again. Most posts change nothing. The channels are locked.
-- Writes:  channels.
declare
	v_channel record;
begin
	for v_channel in
		select u.channel_id, c.limited_rps, case when c.limited_rps is null then 0
			else c.limited_sends + u.count end as sends,
			c.effective_rps >= c.rate_rps and c.rate_rps > 0 as recovered
		from unnest(p_channel_ids, p_counts) u (channel_id, count)
		cross join lateral (
			select c.limited_rps, c.limited_sends, c.effective_rps, c.rate_rps, c.error_streak, c.credential_missing_at
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.channel_id limit 1) c
		where autopost.is_marked(c.error_streak, c.limited_rps, c.credential_missing_at)
	loop
		update autopost.channels c
		set error_streak = 0, credential_missing_at = null, credential_until = null,
			limited_sends = case when v_channel.sends > 60 or v_channel.recovered then 0 else v_channel.sends end,
			limited_rps = case when v_channel.sends > 60 or v_channel.recovered then null else v_channel.limited_rps end
		where c.workspace_id = p_workspace_id and c.channel_id = v_channel.channel_id;
	end loop;
end
$$;

create or replace function autopost.settle_sent(p_workspace_id text, p_delivery autopost.deliveries,
	p_provider_message_id text, p_raw_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: moves a locked delivery in flight to sent; its channel may get faster (speed_up). A post
--          that was found instead of sent counts for its own call, not for this one.
-- Writes:  deliveries, channels, channel_gates, quota_uses, events (sent).
declare
	v_answer jsonb;
begin
	perform autopost.speed_up(p_workspace_id, array[p_delivery.channel_id], '{1}');
	update autopost.quota_uses u
	set posts = 0
	where u.workspace_id = p_workspace_id and u.delivery_id = p_delivery.delivery_id and u.attempt = p_delivery.attempt
		and p_delivery.quota_held and p_raw_meta #> '{raw,reconciled}' = 'true'
		and jsonb_array_length(p_delivery.render_meta -> 'steps') = 1;
	v_answer := autopost.finish_attempt(p_workspace_id, p_delivery, 'sent', null, null, p_provider_message_id);
	perform autopost.emit_event(p_workspace_id, 'sent', 'ok', p_delivery, null,
		jsonb_build_object('provider_message_id', p_provider_message_id, 'raw', p_raw_meta));
	update autopost.channel_gates g
	set last_provider_message_id = p_provider_message_id
	where g.workspace_id = p_workspace_id and g.channel_id = p_delivery.channel_id;
	return v_answer;
end
$$;
