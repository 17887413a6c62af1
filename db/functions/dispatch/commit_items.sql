create or replace function autopost.is_anothers_post(p_workspace_id text, p_delivery autopost.deliveries,
	p_outcome jsonb) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a reconciled post already belongs to another delivery: two deliveries with the
--          same content were reconciled at the same time. The channel is locked by the caller.
-- Reads:   deliveries.
begin
	return p_outcome #> '{raw,reconciled}' = 'true'
		and autopost.known_posts(p_workspace_id, p_delivery.channel_id, p_delivery.delivery_id,
		coalesce(p_delivery.last_call_at, p_delivery.claimed_at)) -> 'others'
		?| (array[p_outcome ->> 'provider_message_id']
			|| array(select jsonb_array_elements_text(p_outcome #> '{raw,ids}')));
end
$$;

create or replace function autopost.error_of(p_act text, p_error jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the normalised error of a failed call. schedule_retry and fail_permanent fix its
--          category, whatever the error says.
select case when a.category is null then autopost.normalised_error(p_error)
	else autopost.normalised_error(p_error || jsonb_build_object('category', a.category)) || case
		when p_error ->> 'category' <> a.category
		then jsonb_build_object('misread', coalesce(autopost.ignored_fields(p_error), '{}')
			|| jsonb_build_object('category', left(p_error ->> 'category', 100))) else '{}' end end
from (select case p_act when 'fail_permanent' then 'PERMANENT' when 'schedule_retry' then 'TRANSIENT' end as category) a
$$;

create or replace function autopost.settle_item(p_workspace_id text, p_item jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: settles one locked delivery by the outcome of its call. p_item: {"delivery_id",
--          "claim_token", "outcome", "not_before", "act", "has_raw" (commit_outcome_batch)}; "act"
--          limits the result to mark_sent, schedule_retry or fail_permanent, otherwise the outcome
--          decides. Acknowledged steps of the outcome ("raw": {"steps": {step: ids}}) are kept in
--          any case. So is the price of further uses ("used": {use: times}) if the claim was under
--          a budget. A success with missing earlier steps is refused, and the claim continues.
declare
	v_token text := p_item ->> 'claim_token';
	v_act text := coalesce(p_item ->> 'act', 'commit_outcome');
	v_outcome jsonb := p_item -> 'outcome';
	v_error jsonb;
	v_missing jsonb;
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
begin
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = (p_item ->> 'delivery_id')::uuid;
	if v_delivery.status is distinct from 'sending' or v_delivery.claim_token is distinct from v_token then
		return autopost.stale_commit(p_workspace_id, v_delivery, v_token, v_act);
	end if;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id;
	if jsonb_typeof(v_outcome -> 'raw' -> 'steps') = 'object' then
		update autopost.deliveries d
		set render_meta = autopost.with_progress(d.render_meta, v_outcome -> 'raw' -> 'steps')
		where d.workspace_id = p_workspace_id and d.delivery_id = v_delivery.delivery_id
		returning d.* into v_delivery;
	end if;
	v_missing := autopost.steps_missing(v_delivery.render_meta, v_outcome);
	if v_missing is not null then
		perform autopost.emit_event(p_workspace_id, 'stale_commit', 'error', v_delivery, null,
			jsonb_build_object('call', v_act, 'status', v_delivery.status, 'reason', 'steps_missing', 'steps',
				v_missing));
		return jsonb_build_object('applied', false, 'reason', 'steps_missing', 'steps', v_missing);
	end if;
	if v_delivery.quota_held and v_outcome ? 'used' then
		perform autopost.charge_uses(p_workspace_id, v_channel.platform,
			autopost.current_auth_ref(p_workspace_id, v_channel), v_delivery.delivery_id,
			v_delivery.attempt, v_outcome -> 'used');
	end if;
	if v_outcome -> 'ok' = 'true' and autopost.is_anothers_post(p_workspace_id, v_delivery, v_outcome) then
		return autopost.settle_transient(p_workspace_id, v_delivery, v_channel,
			autopost.normalised_error(jsonb_build_object('code', 'found_as_another',
			'message', format('%s is the post of another delivery, found at the same time',
				v_outcome ->> 'provider_message_id'))), null);
	elsif v_outcome -> 'ok' = 'true' then
		return autopost.settle_sent(p_workspace_id, v_delivery, v_outcome ->> 'provider_message_id',
			jsonb_strip_nulls(jsonb_build_object('sent_at', v_outcome -> 'sent_at', 'raw', v_outcome -> 'raw')));
	end if;
	v_error := autopost.named_raw(autopost.error_of(v_act, v_outcome -> 'error'),
		coalesce(p_item -> 'has_raw' = 'true', false));
	if v_error -> 'known' = 'false' then
		return autopost.settle_unknown(p_workspace_id, v_delivery, v_channel, v_error);
	end if;
	if v_error ? 'moved' then
		v_error := autopost.move_target(p_workspace_id, v_delivery, v_channel.platform, v_error);
	end if;
	if v_error ->> 'code' = 'credential_missing' and v_act = 'commit_outcome' then
		return autopost.settle_missing_credential(p_workspace_id, v_delivery, v_channel,
			v_error || '{"category": "TRANSIENT", "scope": "delivery"}');
	end if;
	if v_error ->> 'category' = 'PERMANENT' then
		return autopost.settle_permanent(p_workspace_id, v_delivery, v_channel, v_error);
	end if;
	return autopost.settle_transient(p_workspace_id, v_delivery, v_channel,
		v_error, (p_item ->> 'not_before')::timestamptz);
end
$$;

create or replace function autopost.outcome_refusal(p_item jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks an item of a commit without its delivery.
-- Raises:  AP001 for a malformed item.
declare
	v_outcome jsonb := p_item -> 'outcome';
begin
	perform autopost.require_argument('claim_token', p_item ->> 'claim_token' <> '');
	if jsonb_typeof(v_outcome) is distinct from 'object' or jsonb_typeof(v_outcome -> 'ok') is distinct from 'boolean'
		then
		perform autopost.raise_argument('outcome', 'has no "ok"',
			'pass {"ok": true, "provider_message_id": "…"} or {"ok": false, "error": {…}}');
	elsif v_outcome -> 'ok' = 'true' and coalesce(v_outcome ->> 'provider_message_id', '') = '' then
		perform autopost.raise_argument('provider_message_id', 'is missing',
			'a sent post has the platform''s id; without one the outcome is unknown');
	elsif v_outcome -> 'ok' = 'false' and jsonb_typeof(v_outcome -> 'error') is distinct from 'object' then
		perform autopost.raise_argument('error', 'must be an object',
			'pass {"category", "scope", "code", "known", "message"}');
	end if;
end
$$;

create or replace function autopost.release_capacity(p_workspace_id text, p_channel_ids text[], p_counts int[],
	p_posts text[], p_parallel int[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
	set enable_sort = off
as $$
-- Purpose: lowers the counts in flight of these channels, which are in order, and keeps the newest
--          post of each. A gate that was full opens for its next due row, with a wake-up. The gate of
--          any other channel already has the time of its next due row. p_parallel: max_parallel of
--          each. The channels are locked. An enqueue whose rows the statement does not see has opened the
--          gate before, or opens it after this change.
-- Locks:   channel_gates (channel_id).
-- Reads:   deliveries.
-- Writes:  channel_gates.
declare
	v_now timestamptz := autopost.now_ts();
	v_opened boolean;
begin
	with freed as (
		update autopost.channel_gates g
		set inflight = g.inflight - u.places, last_provider_message_id = u.post,
			ready_at = case when g.inflight < u.parallel or g.ready_at <= v_now then g.ready_at
				else least(g.ready_at, (
					select d.due_at from autopost.deliveries d
					where d.workspace_id = p_workspace_id and d.channel_id = g.channel_id
						and d.phase in ('active', 'retry') and d.status <> 'sending'
					order by d.due_at
					limit 1)) end
		from autopost.gate_changes(p_channel_ids, p_counts, null, p_posts, p_parallel) u
		where g.workspace_id = p_workspace_id and g.channel_id between u.channel_id and u.channel_id
		returning g.ready_at < 'infinity' and g.inflight + u.places >= u.parallel as opened
	)
	select bool_or(f.opened) into v_opened
	from autopost.workspaces w
	-- The workspace is read once: its column fixes the order of the join.
	cross join lateral (select x.* from freed x where w.workspace_id <> '' offset 0) f
	where w.workspace_id = p_workspace_id;
	if v_opened then
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.settle_all_sent(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
-- Purpose: settles the usual part of a batch in a few statements: calls that succeeded under the
--          current claim. All rows are locked by the caller.
-- Returns: {index in p_items: answer}. The caller settles the missing ones one by one.
-- Reads:   events.
-- Writes:  deliveries, channels, channel_gates, events (sent; send_attempt if start_call was left
--          out).
declare
	v_now timestamptz;
	v_items jsonb;
	v_tokens jsonb;
	v_ids uuid[];
	v_channels text[];
	v_begun text := autopost.uuid_v7_prefix(clock_timestamp()); -- as in new_id: events of one instant keep their order
	v_prefix text;
	v_salt text := gen_random_uuid();
	v_answers jsonb;
	v_freed record;
	v_parallel int[];
begin
	select jsonb_object_agg(i.value ->> 'delivery_id', i.value || jsonb_build_object('place', i.ordinality)),
		jsonb_object_agg(i.value ->> 'delivery_id', i.value -> 'claim_token'),
			array_agg((i.value ->> 'delivery_id')::uuid)
	into v_items, v_tokens, v_ids
	from jsonb_array_elements(p_items) with ordinality i
	where i.value -> 'outcome' -> 'ok' = 'true' and not coalesce(i.value #> '{outcome,raw,reconciled}' = 'true', false);
	select array_agg(distinct d.channel_id), array_agg(d.delivery_id) into v_channels, v_ids
	from unnest(v_ids) u (id)
	cross join lateral (select d.* from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
	where d.status = 'sending' and d.claim_token = v_tokens ->> d.delivery_id::text and not d.quota_held
	and (jsonb_array_length(d.render_meta -> 'steps') = 1
		or autopost.steps_missing(d.render_meta, v_items -> d.delivery_id::text -> 'outcome') is null);
	if v_channels is null then
		return '{}';
	end if;
	v_now := autopost.now_ts();
	v_prefix := autopost.uuid_v7_prefix(clock_timestamp());
	with done as (
		update autopost.deliveries d
		set status = 'sent',
			claimed_at = null, claimed_by = null, claim_token = null, sending_started_at = null,
				sending_lease_until = null, send_at = null,
			next_retry_at = null, sent_at = v_now, finished_at = v_now, updated_at = v_now,
			last_call_at = coalesce(d.call_begun_at, d.claimed_at),
			(provider_message_id, render_meta) = (
				select o.outcome ->> 'provider_message_id',
					case when jsonb_typeof(o.outcome -> 'raw' -> 'steps') = 'object'
						then autopost.with_progress(d.render_meta, o.outcome -> 'raw' -> 'steps') else d.render_meta end
				from (select v_items -> d.delivery_id::text -> 'outcome' offset 0) o (outcome)),
			settled = jsonb_set('{"token": null}', '{token}', v_tokens -> d.delivery_id::text)
		from autopost.few(v_ids, null, null) u
		where d.workspace_id = p_workspace_id and d.delivery_id between u.id and u.id
		returning d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.last_call_at, d.call_begun_at,
			d.provider_message_id, v_items -> d.delivery_id::text as item
	), begun as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_begun || substr(md5(v_salt || d.delivery_id), 1, 15))::uuid, d.delivery_id,
			d.message_id, d.channel_id, d.last_call_at, 'send_attempt', d.attempt, 'ok',
			autopost.late_start(d.delivery_id, d.trace_id)
		from done d
		join autopost.workspaces w on w.workspace_id = p_workspace_id
		where d.call_begun_at is null
	), logged as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_prefix || substr(md5(v_salt || d.delivery_id), 1, 15))::uuid, d.delivery_id,
			d.message_id, d.channel_id, v_now, 'sent', d.attempt, 'ok',
			autopost.sent_meta(d.provider_message_id, d.trace_id, d.item -> 'outcome' -> 'raw',
				d.item -> 'outcome' -> 'sent_at')
		from done d
		join autopost.workspaces w on w.workspace_id = p_workspace_id
	), freed as (
		select d.channel_id, count(*)::int as places,
			(array_agg(d.provider_message_id order by (d.item ->> 'place')::int desc))[1] as post
		from done d
		join autopost.workspaces w on w.workspace_id = p_workspace_id
		group by d.channel_id
	)
	select array_agg(f.channel_id order by f.channel_id) as channels,
		array_agg(f.places order by f.channel_id) as places,
		array_agg(f.post order by f.channel_id) as posts,
		(select jsonb_object_agg(d.item ->> 'place', autopost.sent_answer(d.attempt)) from done d) as answers
	into v_freed
	from freed f
	join autopost.workspaces w on w.workspace_id = p_workspace_id;
	v_answers := v_freed.answers;
	perform autopost.speed_up(p_workspace_id, v_freed.channels, v_freed.places);
	v_parallel := array(select c.max_parallel from unnest(v_freed.channels) with ordinality u (id, n)
		cross join lateral (select c.max_parallel from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = u.id limit 1) c order by u.n);
	perform autopost.release_capacity(p_workspace_id, v_freed.channels, v_freed.places, v_freed.posts, v_parallel);
	return v_answers;
end
$$;

create or replace function autopost.commit_each(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: commit_items for any batch. It locks all rows first, in the common lock order, settles
--          the sent ones together and the rest one by one.
-- Returns: the answers in the order of the items. A stale or repeated item has an answer too.
-- Raises:  AP001 for a malformed item.
-- Locks:   credential_health of refused credentials, then as lock_for_settling, then channel_gates
--          (channel_id).
declare
	v_ids uuid[];
	v_groups boolean;
	v_moved text[] := '{}';
	v_sent jsonb;
	v_item record;
	v_answers jsonb[];
begin
	v_ids := autopost.uuids_of(p_items, 'delivery_id');
	perform autopost.outcome_refusal(i.value) from jsonb_array_elements(p_items) i
	where (i.value -> 'outcome' -> 'ok' = 'true' and i.value -> 'outcome' ->> 'provider_message_id' <> ''
		and i.value ->> 'claim_token' <> '') is not true;
	v_groups := autopost.groups_are_failing(p_workspace_id) or exists (
		select 1 from jsonb_array_elements(p_items) i
		where i.value -> 'outcome' -> 'error' ->> 'scope' in ('channel', 'platform')
			or not autopost.is_known(i.value -> 'outcome' -> 'error'));
	if v_groups then -- a refused credential and a moved chat have the scope channel
		perform autopost.lock_credentials_of(p_workspace_id, v_ids)
		where exists (select 1 from jsonb_array_elements(p_items) i
			where autopost.is_auth_lost(i.value -> 'outcome' -> 'error'));
		v_moved := array(select i.value #>> '{outcome,error,moved,from}' from jsonb_array_elements(p_items) i
			where i.value #>> '{outcome,error,moved,from}' <> '');
	end if;
	perform autopost.lock_for_settling(p_workspace_id, v_ids, v_groups, v_moved);
	perform autopost.lock_gates(p_workspace_id, autopost.delivery_channels(p_workspace_id, v_ids));
	v_sent := autopost.settle_all_sent(p_workspace_id, p_items);
	v_answers := array_fill(null::jsonb, array[coalesce(cardinality(v_ids), 0)]);
	for v_item in
		select i.value, i.ordinality::int as n, v_sent -> i.ordinality::text as answer
		from jsonb_array_elements(p_items) with ordinality i
		left join lateral (select d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = (i.value ->> 'delivery_id')::uuid
				and not v_sent ? i.ordinality::text limit 1) d on true
		order by d.channel_id, i.value ->> 'delivery_id'
	loop
		v_answers[v_item.n] := coalesce(v_item.answer, autopost.settle_item(p_workspace_id, v_item.value));
	end loop;
	if v_groups then
		perform autopost.judge_platforms(p_workspace_id, p_items, to_jsonb(v_answers));
	end if;
	return to_jsonb(v_answers);
end
$$;

create or replace function autopost.commit_together(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
-- Purpose: commit_items for the usual batch in one probe, one UPDATE and one INSERT: calls of one
--          step without a quota that succeeded under the current claim, while no group fails. Their
--          outcomes may have the ids of the step, as adapters return them. The settings keep the
--          plans by key, whatever the statistics are.
-- Returns: the answers in order; null, with nothing changed, for any other batch.
-- Locks:   channels, deliveries, channel_gates, in this order.
-- Reads:   platform_limits.
-- Writes:  deliveries, channels, channel_gates, events (sent; send_attempt if start_call was left
--          out; stale_commit).
declare
	v_size int;
	v_ids uuid[];
	v_tokens text[];
	v_posts text[];
	v_raws jsonb[]; -- what the platform said beside the id
	v_sent_ats jsonb[]; -- the time of each by the platform
	v_places int[];
	v_channels text[];
	v_plain boolean;
	v_now timestamptz;
	v_begun text := autopost.uuid_v7_prefix(clock_timestamp()); -- as in new_id: events of one instant keep their order
	v_prefix text;
	v_number bigint := (1::bigint << 56) + (random() * (1::bigint << 58))::bigint; -- 15 hexadecimal digits
	v_answers jsonb;
	v_done int[];
	v_freed record;
	v_marked boolean; -- some channels are slow, or their last calls failed
	v_parallel int[]; -- max_parallel of v_channels
begin
	begin
		select count(*), array_agg(i.id::uuid), array_agg(i.token), array_agg(i.post), array_agg(i.raw),
			array_agg(i.outcome -> 'sent_at'), bool_and(coalesce(i.outcome -> 'ok' = 'true' and i.token <> '' and i.post <> ''
				and not coalesce(i.raw ? 'reconciled', false), false))
		into v_size, v_ids, v_tokens, v_posts, v_raws, v_sent_ats, v_plain
		from (
			select i.id, i.token, i.outcome, i.outcome ->> 'provider_message_id' as post, i.outcome -> 'raw' as raw
			from (
				select i.value ->> 'delivery_id' as id, i.value ->> 'claim_token' as token, i.value -> 'outcome' as outcome
				from jsonb_array_elements(p_items) i offset 0) i -- each value is taken out once
			offset 0) i;
	exception when invalid_text_representation then
		return null; -- commit_each names the argument
	end;
	if v_plain is distinct from true or autopost.groups_are_failing(p_workspace_id) then
		return null;
	end if;
	select array_agg(r.id), array_agg(r.token), array_agg(r.post), array_agg(r.raw),
		array_agg(r.sent_at), array_agg(r.place), array_agg(distinct r.channel_id), count(distinct r.id) = v_size
	into v_ids, v_tokens, v_posts, v_raws, v_sent_ats, v_places, v_channels, v_plain
	from (
		select u.id, u.token, u.post, u.raw, u.sent_at, u.n::int as place, d.channel_id
		from autopost.few(v_ids, v_tokens, null, null, v_posts, v_raws, v_sent_ats) u
		cross join lateral (
			select d.channel_id, d.status, d.claim_token, d.quota_held, d.render_meta from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
		where d.status = 'sending' and d.claim_token = u.token and not d.quota_held
			and jsonb_array_length(d.render_meta -> 'steps') = 1
		order by d.channel_id, u.id) r;
	if v_plain is distinct from true then
		return null;
	end if;
	-- The sub-select keeps one plan, as in update_gates.
	select bool_or(c.marked), array_agg(c.max_parallel order by u.id) into v_marked, v_parallel
	from (select u.id from unnest((select v_channels)) u (id) order by u.id) u
	cross join lateral (
		select c.max_parallel, autopost.is_marked(c.error_streak, c.limited_rps, c.credential_missing_at) as marked
		from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = u.id limit 1
		for no key update of c) c;
	v_now := autopost.now_ts();
	v_prefix := autopost.uuid_v7_prefix(clock_timestamp());
	with done as (
		update autopost.deliveries d
		set status = 'sent',
			claimed_at = null, claimed_by = null, claim_token = null, sending_started_at = null,
				sending_lease_until = null, send_at = null,
			next_retry_at = null, sent_at = v_now, finished_at = v_now, updated_at = v_now,
			last_call_at = coalesce(d.call_begun_at, d.claimed_at), provider_message_id = u.post,
			render_meta = case when jsonb_typeof(u.raw -> 'steps') = 'object'
				then autopost.with_progress(d.render_meta, u.raw -> 'steps') else d.render_meta end,
			settled = ('{"token": "' || u.token || '"}')::jsonb -- immutable; a token is hexadecimal
		from autopost.few(v_ids, v_tokens, v_places, null, v_posts, v_raws, v_sent_ats) u
		where d.workspace_id = p_workspace_id and d.delivery_id between u.id and u.id and d.status = 'sending'
			and d.claim_token = u.token
		returning d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.last_call_at, d.call_begun_at,
			u.post, u.raw, u.sent_at, u.place
	), begun as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_begun || to_hex(v_number + d.place))::uuid, d.delivery_id,
			d.message_id, d.channel_id, d.last_call_at, 'send_attempt', d.attempt, 'ok',
			autopost.late_start(d.delivery_id, d.trace_id)
		from done d
		join autopost.workspaces w on w.workspace_id = p_workspace_id
		where d.call_begun_at is null
	), logged as (
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			meta)
		select w.workspace_id, (v_prefix || to_hex(v_number + d.place))::uuid, d.delivery_id, d.message_id,
			d.channel_id, v_now, 'sent', d.attempt, 'ok',
			autopost.sent_meta(d.post, d.trace_id, d.raw, d.sent_at)
		from autopost.workspaces w
		-- The workspace is read once: its column fixes the order of the join.
		cross join lateral (select x.* from done x where w.workspace_id <> '' offset 0) d
		where w.workspace_id = p_workspace_id
	), freed as (
		select d.channel_id, count(*)::int as places, (array_agg(d.post order by d.place desc))[1] as post
		from autopost.workspaces w
		cross join lateral (select x.* from done x where w.workspace_id <> '' offset 0) d
		where w.workspace_id = p_workspace_id
		group by d.channel_id
	)
	select array_agg(f.channel_id order by f.channel_id) as channels,
		array_agg(f.places order by f.channel_id) as places,
		array_agg(f.post order by f.channel_id) as posts,
		(select array_agg(d.attempt order by d.place) from done d) as attempts,
		(select array_agg(d.place order by d.place) from done d) as done
	into v_freed
	from autopost.workspaces w
	cross join lateral (select x.* from freed x where w.workspace_id <> '' offset 0) f
	where w.workspace_id = p_workspace_id;
	v_answers := autopost.sent_answers(v_freed.attempts);
	v_done := v_freed.done;
	if v_marked then
		perform autopost.speed_up(p_workspace_id, v_freed.channels, v_freed.places);
	end if;
	if v_done is not null then
		if v_freed.channels <> v_channels then -- all claims of some channels ended meanwhile
			v_parallel := array(select v_parallel[array_position(v_channels, u.id)]
				from unnest(v_freed.channels) with ordinality u (id, n) order by u.n);
		end if;
		perform autopost.release_capacity(p_workspace_id, v_freed.channels, v_freed.places, v_freed.posts, v_parallel);
	end if;
	if coalesce(cardinality(v_done), 0) < v_size then -- their claims ended meanwhile
		v_answers := (select jsonb_agg(coalesce(v_answers -> (array_position(v_done, i.ordinality::int) - 1),
			autopost.settle_item(p_workspace_id, i.value)) order by i.ordinality)
			from jsonb_array_elements(p_items) with ordinality i);
	end if;
	return v_answers;
end
$$;

create or replace function autopost.commit_items(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: settles one or many deliveries in one transaction.
-- Returns: the answers in the order of the items. A stale or repeated item has an answer too.
-- Raises:  AP001 for a malformed item.
-- Locks:   as commit_together or commit_each.
begin
	perform autopost.require_array('items', p_items);
	return coalesce(autopost.commit_together(p_workspace_id, p_items), autopost.commit_each(p_workspace_id, p_items));
end
$$;
