create or replace function autopost.replaceable(p_workspace_id text, p_message_id uuid)
	returns table (delivery autopost.deliveries, channel autopost.channels, obstacle text, remove_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the deliveries of a post that are not over, each with the reason why it cannot be replaced
--          (null: it can) and the time at which the post itself asked for its removal.
-- Reads:   deliveries, channels, post_acts.
begin
	return query
	select row(d.*)::autopost.deliveries, row(c.*)::autopost.channels,
		autopost.move_obstacle(row(d.*)::autopost.deliveries), (
		select a.due_at from autopost.post_acts a
		where a.workspace_id = p_workspace_id and a.delivery_id = d.delivery_id and a.status = 'queued'
			and autopost.came_with_its_post(row(a.*)::autopost.post_acts)
		limit 1)
	from autopost.deliveries d
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
	where d.workspace_id = p_workspace_id and d.message_id = p_message_id
		and d.phase in ('active', 'claimed', 'retry')
	order by d.channel_id, d.delivery_id;
end
$$;

create or replace function autopost.replace_refusals(p_workspace_id text, p_post jsonb,
	p_channel_ids text[]) returns jsonb
language plpgsql stable
as $$
-- Purpose: the channels that cannot take the new content of a post, {channel_id: {"reason",
--          "message"}}. p_post comes from prepare_post.
-- Reads:   channels, platforms, media_origin, templates, messages, deliveries.
declare
	v_message_id uuid := autopost.message_with(p_workspace_id, p_post ->> 'content_hash');
	v_route record;
	v_shown record;
begin
	select r.ids, r.ttls, r.choices, r.renderings into v_route
	from autopost.route_post(p_workspace_id, autopost.frozen_post(p_post || jsonb_build_object('channels',
		p_channel_ids,
		'fixed', true, 'decided', true), null, autopost.now_ts()), '', cardinality(p_channel_ids)) r;
	select s.verdicts, s.errors into v_shown
	from autopost.show_post(p_workspace_id, p_post -> 'payload', p_post -> 'tags', v_route.renderings) s;
	return (
		select coalesce(jsonb_object_agg(u.channel_id, case when v_shown.verdicts[u.choice] = 'queued'
			then '{"reason": "duplicate", "message": "the channel has the new content already: skip the delivery"}'::jsonb
			else jsonb_build_object('reason', 'validation_failed', 'message',
				coalesce(v_shown.errors[u.choice] ->> 'message',
				'nothing would be left of the post')) end), '{}')
		from unnest(v_route.ids, v_route.ttls, v_route.choices) u (channel_id, ttl, choice)
		where v_shown.verdicts[u.choice] <> 'queued'
		or exists (
			select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.message_id = v_message_id and d.channel_id = u.channel_id
				and (d.phase = 'deduped') is false
				and (d.phase in ('active', 'claimed', 'retry')
					or d.phase = 'sent' and d.sent_at > autopost.now_ts() - make_interval(hours => u.ttl))));
end
$$;

create or replace function autopost.hold_replacement(p_workspace_id text, p_message autopost.messages, p_raw jsonb,
	p_channel_ids text[], p_operator text, p_run_id uuid) returns uuid
language plpgsql
as $$
-- Purpose: keeps the new content of a post for moderated channels until a person decides.
-- Returns: the submission.
-- Writes:  submissions, events (submission_pending).
declare
	v_id uuid := autopost.new_id();
begin
	insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, source_ref,
		run_id, trace_id, moderated, channels, replaces, author, created_at, updated_at)
	values (p_workspace_id, v_id, p_message.source ->> 'endpoint_id', 'api', 'new', p_raw, p_raw ->> 'source_ref',
		p_run_id,
		autopost.new_id(), true, p_channel_ids, p_message.message_id, p_operator, autopost.now_ts(), autopost.now_ts());
	perform autopost.await_decision(p_workspace_id, v_id, p_raw);
	return v_id;
end
$$;

create or replace function autopost.with_times(p_raw jsonb, p_scheduled_for timestamptz, p_remove_at timestamptz)
	returns jsonb
language sql stable
as $$
-- Purpose: a raw payload with the times of the delivery that it replaces. Its own remove_at wins.
select jsonb_strip_nulls(jsonb_build_object('scheduled_for', autopost.utc(p_scheduled_for), 'remove_at',
	case when p_remove_at > autopost.now_ts() then autopost.utc(p_remove_at) end)) || p_raw
$$;

create or replace function autopost.end_replaced(p_workspace_id text, p_delivery_id uuid, p_by jsonb, p_meta jsonb)
	returns void
language plpgsql
as $$
-- Purpose: ends a delivery whose content was replaced. p_by: {"replaced_by": message} or
--          {"submission_id"}.
-- Writes:  deliveries, events (manual_skip).
declare
	v_delivery autopost.deliveries;
	v_now timestamptz;
begin
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	v_now := autopost.now_ts();
	update autopost.deliveries d
	set status = 'dead', next_retry_at = null, finished_at = v_now, updated_at = v_now,
		last_error = autopost.normalised_error(jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery',
			'code', 'manual_skip', 'known', true, 'message', p_meta ->> 'reason'))
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	perform autopost.emit_event(p_workspace_id, 'manual_skip', 'ok', v_delivery, null,
		p_meta || p_by || jsonb_build_object('from_status', v_delivery.status));
end
$$;

create or replace function autopost.replace_queued(p_workspace_id text, p_message_id uuid, p_raw jsonb, p_old jsonb,
	p_run_id uuid, p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: enqueues the new content for the channels of locked deliveries, with their times, and ends
--          these deliveries. A delivery whose channel did not take the new content stays. p_old: as in
--          replace_held.
-- Returns: {old delivery_id: {"new_delivery_id", "message_id"}}.
-- Locks:   as enqueue_posts.
-- Writes:  ingest_runs; as enqueue_posts; deliveries, channel_gates, events (manual_skip).
declare
	v_items jsonb;
	v_answers jsonb;
	v_message_id uuid;
	v_pair record;
	v_answer jsonb := '{}';
	v_due timestamptz := 'infinity';
begin
	select jsonb_agg(jsonb_build_object('raw', autopost.with_times(p_raw, null, g.remove_at), 'trace_id',
		autopost.new_id(), 'channels', g.channels, 'fixed', true, 'decided', true)) into v_items
	from (
		select (o.value ->> 'remove_at')::timestamptz as remove_at, jsonb_agg(o.value -> 'channel_id') as channels
		from jsonb_array_elements(p_old) o
		group by 1) g;
	v_answers := case when v_items is null then '[]'
		else autopost.enqueue_posts(p_workspace_id, v_items, p_run_id, autopost.now_ts()) end;
	v_message_id := (v_answers #>> '{0,message_id}')::uuid;
	perform autopost.close_run(p_workspace_id, p_run_id, autopost.answer_stats(v_answers), null);
	for v_pair in
		select o.delivery_id as old_id, o.not_before, o.scheduled_for, n.delivery_id as new_id
		from autopost.deliveries n
		join autopost.deliveries o on o.workspace_id = p_workspace_id and o.message_id = p_message_id
			and o.channel_id = n.channel_id and o.phase in ('active', 'retry') and o.status <> 'sending'
		where n.workspace_id = p_workspace_id and n.message_id = v_message_id and n.status = 'queued'
			and n.ingest_run_id = p_run_id
		order by o.channel_id
	loop
		perform autopost.set_schedule(p_workspace_id, v_pair.new_id, v_pair.scheduled_for, v_pair.not_before),
			autopost.end_replaced(p_workspace_id, v_pair.old_id, jsonb_build_object('replaced_by',
				v_message_id), p_meta);
		v_due := least(v_due, greatest(v_pair.not_before, v_pair.scheduled_for));
		v_answer := v_answer || jsonb_build_object(v_pair.old_id, jsonb_build_object('new_delivery_id', v_pair.new_id,
			'message_id', v_message_id));
	end loop;
	perform autopost.arm_gates(p_workspace_id, array(select o.value ->> 'channel_id'
		from jsonb_array_elements(p_old) o),
		v_due) where v_answer <> '{}';
	return v_answer;
end
$$;

create or replace function autopost.replace_held(p_workspace_id text, p_message autopost.messages, p_raw jsonb,
	p_old jsonb, p_run_id uuid, p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: makes the new content of a post wait for a decision in moderated channels, and ends what
--          waited there. p_old: [{"delivery_id", "channel_id", "scheduled_for", "remove_at"}].
-- Returns: {delivery_id: {"submission_id"}}.
-- Writes:  submissions, deliveries, events (submission_pending, manual_skip).
declare
	v_group record;
	v_id uuid;
	v_answer jsonb := '{}';
begin
	for v_group in
		select (o.value ->> 'scheduled_for')::timestamptz as scheduled_for,
			(o.value ->> 'remove_at')::timestamptz as remove_at,
			array_agg((o.value ->> 'delivery_id')::uuid order by o.ordinality) as ids,
			array_agg(o.value ->> 'channel_id' order by o.ordinality) as channels
		from jsonb_array_elements(p_old) with ordinality o
		group by 1, 2
		order by 1, 2
	loop
		v_id := autopost.hold_replacement(p_workspace_id, p_message, autopost.with_times(p_raw, v_group.scheduled_for,
			v_group.remove_at), v_group.channels, p_meta ->> 'operator', p_run_id);
		perform autopost.end_replaced(p_workspace_id, u.id, jsonb_build_object('submission_id', v_id), p_meta)
		from unnest(v_group.ids) u (id);
		v_answer := v_answer || (select jsonb_object_agg(u.id, jsonb_build_object('submission_id', v_id))
			from unnest(v_group.ids) u (id));
	end loop;
	return v_answer;
end
$$;

create or replace function autopost.replace_parts(p_workspace_id text, p_message autopost.messages, p_raw jsonb,
	p_run_id uuid, p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: replaces the parts of a post that wait for a decision by the new content, which waits, too.
-- Returns: [result]: see replace_post.
-- Writes:  submissions, approvals, events (submission_pending, submission_skipped).
declare
	v_old autopost.submissions;
	v_id uuid;
	v_results jsonb := '[]';
	v_now timestamptz;
begin
	for v_old in
		select s.* from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.message_id = p_message.message_id and s.status = 'pending'
		order by s.submission_id
	loop
		v_id := autopost.hold_replacement(p_workspace_id, p_message, autopost.with_times(p_raw,
			autopost.timestamp_of(v_old.raw_payload ->> 'scheduled_for'),
				autopost.timestamp_of(v_old.raw_payload ->> 'remove_at')),
			v_old.channels, p_meta ->> 'operator', p_run_id);
		v_now := autopost.now_ts();
		update autopost.submissions s
		set status = 'skipped', updated_at = v_now
		where s.workspace_id = p_workspace_id and s.submission_id = v_old.submission_id;
		perform autopost.note_submission(v_old, 'submission_skipped', p_meta || jsonb_build_object('replaced_by',
			v_id));
		v_results := v_results || jsonb_build_object('submission_id', v_old.submission_id, 'channels', v_old.channels,
			'applied', true, 'change', 'pending', 'new_submission_id', v_id);
	end loop;
	return v_results;
end
$$;

create or replace function autopost.lock_replaced(p_workspace_id text, p_message_id uuid, p_post jsonb) returns uuid[]
language plpgsql
as $$
-- Purpose: locks everything that a replacement reads and changes, in the common order.
-- Returns: the deliveries of the post that are not over.
-- Locks:   submissions, media_origin (shared), channels, messages (of the new content), deliveries,
--          in this order.
declare
	v_ids uuid[];
begin
	perform 1 from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.message_id = p_message_id and s.status = 'pending'
	order by s.submission_id
	for no key update of s;
	perform autopost.hold_origins(p_workspace_id, jsonb_build_array(p_post));
	v_ids := array(select (r.delivery).delivery_id from autopost.replaceable(p_workspace_id, p_message_id) r);
	perform autopost.lock_channels(p_workspace_id, array(select d.channel_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids)));
	perform 1 from autopost.messages m
	where m.workspace_id = p_workspace_id and m.hash_version = autopost.hash_version()
		and m.content_hash = p_post ->> 'content_hash'
	for no key update of m;
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	return v_ids;
end
$$;

create or replace function autopost.replace_once(p_workspace_id text, p_message autopost.messages, p_post jsonb,
	p_meta jsonb, p_last boolean) returns jsonb
language plpgsql
as $$
-- Purpose: one try of replace_waiting. Unless p_last, it fails if a channel got the new content since the
--          check, by an enqueue that committed meanwhile.
-- Returns: [result]: see replace_post.
-- Raises:  AP901.
-- Locks:   as lock_replaced, then as enqueue_posts.
-- Writes:  ingest_runs; as enqueue_posts, replace_held and replace_parts.
declare
	v_ids uuid[] := autopost.lock_replaced(p_workspace_id, p_message.message_id, p_post);
	v_moderated boolean := coalesce((select e.moderated from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.endpoint_id = p_message.source ->> 'endpoint_id'), false);
	v_changed boolean := p_post ->> 'content_hash' <> p_message.content_hash;
	v_run_id uuid := autopost.new_id();
	v_rows jsonb;
	v_refused jsonb;
	v_todo jsonb;
	v_parts jsonb := '[]';
	v_done jsonb := '{}';
begin
	select coalesce(jsonb_agg(jsonb_build_object('delivery_id', (r.delivery).delivery_id, 'channel_id',
		(r.delivery).channel_id,
		'obstacle', r.obstacle, 'scheduled_for', (r.delivery).scheduled_for, 'remove_at', r.remove_at,
		'held', v_moderated or (r.channel).moderated)), '[]') into v_rows
	from autopost.replaceable(p_workspace_id, p_message.message_id) r
	where (r.delivery).delivery_id = any (v_ids);
	v_refused := case when not v_changed then '{}' else autopost.replace_refusals(
		p_workspace_id, p_post, array(select r.value ->> 'channel_id' from jsonb_array_elements(v_rows) r)) end;
	select coalesce(jsonb_agg(r.value || case
		when r.value ->> 'obstacle' is not null then jsonb_build_object('reason', r.value -> 'obstacle', 'message',
			autopost.move_message(r.value ->> 'obstacle'))
		when not v_changed then '{"reason": "unchanged", "message": "it has this content already"}'::jsonb
		else coalesce(v_refused -> (r.value ->> 'channel_id'), '{}') end), '[]') into v_rows
	from jsonb_array_elements(v_rows) r;
	v_todo := jsonb_path_query_array(v_rows, '$[*] ? (!exists (@.reason))');
	if v_todo <> '[]' or v_changed and exists (select 1 from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.message_id = p_message.message_id and s.status = 'pending') then
		perform autopost.begin_run(p_workspace_id, v_run_id, 'api', p_message.source ->> 'endpoint_id', null);
		v_parts := autopost.replace_parts(p_workspace_id, p_message, p_post -> 'raw', v_run_id, p_meta);
		v_done := autopost.replace_held(p_workspace_id, p_message, p_post -> 'raw', jsonb_path_query_array(v_todo,
			'$[*] ? (@.held == true)'), v_run_id, p_meta);
		v_done := v_done || autopost.replace_queued(p_workspace_id, p_message.message_id, p_post -> 'raw',
			jsonb_path_query_array(v_todo, '$[*] ? (@.held == false)'), v_run_id, p_meta);
	end if;
	if not p_last and exists (select 1 from jsonb_array_elements(v_todo) t
		where not v_done ? (t.value ->> 'delivery_id')) then
		raise exception 'a channel got the content meanwhile' using errcode = 'AP901';
	end if;
	return (
		select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('delivery_id', r.value -> 'delivery_id',
			'channel_id',
			r.value -> 'channel_id', 'applied', v_done ? (r.value ->> 'delivery_id'), 'change', case
				when not v_done ? (r.value ->> 'delivery_id') then 'refused'
				when r.value -> 'held' = 'true' then 'pending' else 'replaced' end,
			'reason', case when not v_done ? (r.value ->> 'delivery_id') then coalesce(r.value -> 'reason',
				'"duplicate"') end,
			'message', r.value -> 'message') || coalesce(v_done -> (r.value ->> 'delivery_id'), '{}'))
			order by r.ordinality), '[]')
		from jsonb_array_elements(v_rows) with ordinality r)
		|| v_parts;
end
$$;

create or replace function autopost.replace_waiting(p_workspace_id text, p_message autopost.messages, p_post jsonb,
	p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: replaces the content of a post where it waits: in the queue or for a decision. p_post comes
--          from prepare_post. The second try sees, under its lock, the content that disturbed the first.
-- Returns: [result]: see replace_post.
-- Locks:   as replace_once.
-- Writes:  as replace_once.
begin
	begin
		return autopost.replace_once(p_workspace_id, p_message, p_post, p_meta, false);
	exception when sqlstate 'AP901' then
		null; -- the writes are rolled back
	end;
	return autopost.replace_once(p_workspace_id, p_message, p_post, p_meta, true);
end
$$;
