create or replace function autopost.claims_to_start(p_workspace_id text, p_items jsonb, out o_ids uuid[],
	out o_tokens jsonb, out o_places jsonb)
language plpgsql
as $$
-- Purpose: the deliveries of these items without duplicates. If one has several tokens, the current one counts.
-- Returns: o_tokens {delivery_id: claim_token}; o_places {delivery_id: index in p_items}.
-- Raises:  AP001 for a malformed item.
-- Reads:   deliveries.
declare
	v_ids uuid[] := autopost.uuids_of(p_items, 'delivery_id');
begin
	perform autopost.require_argument('claim_token', not exists (select 1 from jsonb_array_elements(p_items) i
		where coalesce(i.value ->> 'claim_token', '') = ''));
	select jsonb_object_agg(v_ids[i.ordinality], i.value -> 'claim_token'),
		jsonb_object_agg(v_ids[i.ordinality], i.ordinality - 1)
	into o_tokens, o_places
	from jsonb_array_elements(p_items) with ordinality i;
	if exists (select 1 from jsonb_array_elements(p_items) with ordinality i
		where o_tokens -> v_ids[i.ordinality]::text <> i.value -> 'claim_token') then
		select jsonb_object_agg(v_ids[i.ordinality], i.value -> 'claim_token' order by i.present),
			jsonb_object_agg(v_ids[i.ordinality], i.ordinality - 1 order by i.present)
		into o_tokens, o_places
		from (
			select i.value, i.ordinality, exists (
				select 1 from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = v_ids[i.ordinality]
					and d.claim_token = i.value ->> 'claim_token') as present
			from jsonb_array_elements(p_items) with ordinality i) i;
	end if;
	o_ids := array(select k.key::uuid from jsonb_object_keys(o_tokens) k (key));
end
$$;

create or replace function autopost.replace_late_slots(p_workspace_id text, p_ids uuid[], p_tokens jsonb,
	p_before timestamptz, p_now timestamptz) returns void
language plpgsql
as $$
-- Purpose: gives the late ones of these claims their next slots: those with a slot before p_before, started
--          or not, and unstarted ones with a slot beyond the horizon of any claim, because the clock was
--          put back since. A started call waits for a slot at any distance. All rows are locked.
-- Writes:  deliveries, channels, platform_limits.
declare
	v_horizon interval := autopost.slot_horizon();
	v_late record;
	v_slots jsonb := '{}';
begin
	for v_late in
		select l.begun, array_agg(l.delivery_id order by l.send_at, l.delivery_id) as ids
		from (
			select u.id as delivery_id, d.send_at, d.call_begun_at is not null as begun
			from unnest(p_ids) u (id)
			cross join lateral (
				select d.send_at, d.call_begun_at, d.status, d.claim_token, d.sending_lease_until
					from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
			where (d.send_at < p_before or d.send_at > p_now + v_horizon) and d.status = 'sending'
				and d.claim_token = p_tokens ->> u.id::text
			and d.sending_lease_until > p_now) l
		where l.send_at < p_before or not l.begun
		group by l.begun
		order by l.begun desc
	loop
		v_slots := v_slots || autopost.retake_slots(p_workspace_id, v_late.ids, p_now, not v_late.begun,
			case when v_late.begun then 315360000000000 else extract(epoch from v_horizon) * 1000000 end::bigint);
	end loop;
	update autopost.deliveries d
	set send_at = autopost.instant_of(v_slots ->> d.delivery_id::text)
	where d.workspace_id = p_workspace_id
		and d.delivery_id = any (array(select k.key::uuid from jsonb_object_keys(v_slots) k (key)));
end
$$;

create or replace function autopost.begin_calls(p_workspace_id text, p_items jsonb, out o_begun jsonb,
	out o_status text)
language plpgsql
as $$
-- Purpose: locks all rows that these calls may need, in the common lock order, and starts the calls
--          without an obstacle in one statement. A late call gets the next slot, started or not. So
--          does a call with a slot beyond the horizon of any claim: the clock was put back since.
-- Returns: o_begun {index in p_items: answer}; o_status, the status of the workspace after the
--          locks, because it may have been paused meanwhile.
-- Raises:  AP001 for a malformed item.
-- Locks:   see lock_for_start.
-- Reads:   channels, platform_limits.
-- Writes:  deliveries, events (send_attempt); channels and platform_limits for new slots.
declare
	v_tokens jsonb;
	v_places jsonb;
	v_ids uuid[];
	v_channels text[];
	v_since timestamptz;
	v_asked timestamptz := autopost.now_ts();
	v_tolerance interval := autopost.slot_tolerance();
	v_before timestamptz := v_asked - v_tolerance; -- a call with an earlier slot is late
	v_horizon interval := autopost.slot_horizon();
	v_now timestamptz;
	v_doubtful jsonb;
	v_overdue boolean;
	v_answer jsonb;
	v_prefix text;
	v_salt text := gen_random_uuid();
	v_margin interval := autopost.setting_interval('lease_margin_seconds');
	v_begun_at timestamptz[];
	v_lease timestamptz;
	v_deadline timestamptz; -- of the calls with this claim time and lease: mostly all
begin
	select c.o_ids, c.o_tokens, c.o_places into v_ids, v_tokens, v_places
	from autopost.claims_to_start(p_workspace_id, p_items) c;
	select array_agg(distinct d.channel_id), min(d.claimed_at), min(d.sending_lease_until),
		coalesce(bool_or(d.send_at < v_before or d.send_at > v_asked + v_horizon), false)
	into v_channels, v_since, v_lease, v_overdue
	from unnest(v_ids) u (id)
	cross join lateral (select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
	where d.status = 'sending' and d.claim_token = v_tokens ->> d.delivery_id::text;
	perform autopost.lock_for_start(p_workspace_id, v_ids, v_channels, v_overdue);
	o_status := (select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id);
	v_now := autopost.now_ts();
	if v_now > v_asked + v_tolerance then -- the locks took time
		v_before := v_now - v_tolerance;
	end if;
	v_answer := jsonb_build_object('applied', true, 'now', v_now);
	v_deadline := autopost.call_deadline(v_lease, v_since, v_margin);
	v_prefix := autopost.uuid_v7_prefix(clock_timestamp()); -- as in new_id: events of one instant keep their order
	v_doubtful := autopost.doubtful_channels(p_workspace_id, o_status, v_channels, v_now,
		autopost.windows_of(p_workspace_id, v_channels, v_now));
	if v_overdue then
		perform autopost.replace_late_slots(p_workspace_id, v_ids, v_tokens, v_before, v_now);
	end if;
	with begun as (
		select d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.claimed_by, d.claimed_at,
			d.sending_lease_until, d.send_at,
			greatest(v_now, d.claimed_at) as begun_at -- never before its claim, even if the clock was put back
		from unnest(v_ids) u (id)
		cross join lateral (select d.* from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
		where d.status = 'sending' and d.claim_token = v_tokens ->> d.delivery_id::text
			and d.sending_lease_until > v_now
		and d.call_begun_at is null
		and coalesce(d.send_at, v_now) between v_before and v_now + v_horizon
		and (not v_doubtful ? d.channel_id or autopost.call_obstacle(p_workspace_id, o_status, d.delivery_id, d.channel_id,
			d.send_at, v_now) is null)
	), logged as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_prefix || substr(md5(v_salt || b.delivery_id), 1, 15))::uuid, b.delivery_id,
			b.message_id, b.channel_id, b.begun_at, 'send_attempt', b.attempt, 'ok',
			autopost.start_meta(b.delivery_id, b.claimed_by, b.send_at, b.trace_id)
		from begun b
		join autopost.workspaces w on w.workspace_id = p_workspace_id
	)
	select coalesce(jsonb_object_agg(v_places ->> b.delivery_id::text,
		v_answer || jsonb_build_object('send_at', b.send_at,
		'deadline', case when b.sending_lease_until = v_lease and b.claimed_at = v_since then v_deadline
			else autopost.call_deadline(b.sending_lease_until, b.claimed_at, v_margin) end)), '{}'),
		array_agg(b.delivery_id), array_agg(b.begun_at)
	into o_begun, v_ids, v_begun_at
	from begun b
	join autopost.workspaces w on w.workspace_id = p_workspace_id;
	update autopost.deliveries d
	set call_begun_at = u.slot
	from autopost.few(v_ids, null, null, v_begun_at) u
	where d.workspace_id = p_workspace_id and d.delivery_id = u.id;
end
$$;

create or replace function autopost.begin_or_release(p_workspace_id text, p_status text, p_item jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: start_call for a claim that begin_calls did not start. The claim is stale, or its call
--          already started, or it has an obstacle and is released. All rows are locked by the
--          caller.
-- Writes:  deliveries, channel_gates, events (released).
declare
	v_now timestamptz := autopost.now_ts();
	v_delivery autopost.deliveries;
	v_obstacle text;
begin
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = (p_item ->> 'delivery_id')::uuid;
	if v_delivery.status is distinct from 'sending' or v_delivery.claim_token is distinct from p_item ->> 'claim_token'
		or v_delivery.sending_lease_until <= v_now then
		return '{"applied": false, "reason": "stale"}';
	end if;
	if autopost.call_started_at(v_delivery) is not null then
		return jsonb_build_object('applied', true, 'repeated', true, 'now', v_now, 'send_at', v_delivery.send_at,
			'deadline',
			autopost.call_deadline(v_delivery.sending_lease_until, v_delivery.claimed_at,
				autopost.setting_interval('lease_margin_seconds')));
	end if;
	-- late, and the horizon has no free slot
	v_obstacle := coalesce(autopost.call_obstacle(p_workspace_id, p_status, v_delivery.delivery_id, v_delivery.channel_id,
		v_delivery.send_at, v_now), 'rate');
	perform autopost.release_claim(p_workspace_id, v_delivery, v_obstacle);
	return jsonb_build_object('applied', false, 'reason', v_obstacle);
end
$$;

create or replace function autopost.start_each(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: start_items for any batch.
-- Locks:   as begin_calls, then channel_gates if a claim may be released.
declare
	v_done record := autopost.begin_calls(p_workspace_id, p_items);
	v_answers jsonb[];
	v_item record;
begin
	if jsonb_array_length(p_items) > (select count(*) from jsonb_object_keys(v_done.o_begun)) then
		perform autopost.lock_gates(p_workspace_id, array(select distinct d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = any (autopost.uuids_of(p_items, 'delivery_id'))));
	end if;
	for v_item in select i.value, i.ordinality::int as n, v_done.o_begun -> (i.ordinality - 1)::text as begun
		from jsonb_array_elements(p_items) with ordinality i loop
		v_answers[v_item.n] := coalesce(v_item.begun,
			autopost.begin_or_release(p_workspace_id, v_done.o_status, v_item.value));
	end loop;
	return coalesce(to_jsonb(v_answers), '[]');
end
$$;
