create or replace function autopost.fan_out(p_workspace_id text, p_post jsonb, p_run_id uuid, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- One message to every channel that should get it: routes, renders once per choice, drops what was sent or is in flight, inserts.
-- The message's row is locked by now, so the one snapshot of the insert sees every earlier delivery of this content.
-- Returns {"enqueued", "deduped", "invalid", "skipped", "deliveries", "armed": [channel_id], "due"}.
-- Reads: channels, platforms, media_origin, deliveries. Writes: deliveries, events.
declare
	v_payload jsonb := p_post -> 'payload';
	v_message_id uuid := (p_post ->> 'message_id')::uuid;
	v_trace_id uuid := (p_post ->> 'trace_id')::uuid;
	v_hash text := p_post ->> 'content_hash';
	v_fresh boolean := (p_post ->> 'fresh')::boolean;
	v_scheduled timestamptz := autopost.timestamp_of(p_post -> 'raw' ->> 'scheduled_for');
	v_routing jsonb := coalesce(p_post -> 'raw' -> 'routing', '{}');
	v_tags text[] := array(select jsonb_array_elements_text(p_post -> 'tags') union select jsonb_array_elements_text(coalesce(p_post -> 'route_tags', '[]')));
	v_ids text[];
	v_choices text[]; -- of each channel, as the key of its rendering
	v_renders jsonb;
	v_sizes jsonb;
	v_salt text := gen_random_uuid()::text;
	v_made jsonb;
begin
	select array_agg(c.channel_id order by c.channel_id), array_agg(autopost.render_choice(v_payload, c)::text order by c.channel_id)
	into v_ids, v_choices
	from autopost.channels c
	where c.workspace_id = p_workspace_id
	and c.enabled
	and autopost.route_matches(c.route_filter, v_tags)
	and (not v_routing ? 'include_channels' or v_routing -> 'include_channels' ? c.channel_id)
	and not coalesce(v_routing -> 'exclude_channels' ? c.channel_id, false);

	select coalesce(jsonb_object_agg(o.blob_ref, o.size_bytes), '{}') into v_sizes
	from autopost.media_origin o
	where o.workspace_id = p_workspace_id
	and o.blob_ref in (select m.value ->> 'blob_ref' from jsonb_array_elements(coalesce(v_payload -> 'media', '[]')) m);

	select coalesce(jsonb_object_agg(k.choice, autopost.render(v_payload, p, autopost.with_template(p_workspace_id, v_payload, k.choice::jsonb), v_sizes)), '{}') into v_renders
	from (select distinct u.choice from unnest(v_choices) u (choice)) k
	join autopost.platforms p on p.platform = k.choice::jsonb ->> 'platform';

	insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, not_before, scheduled_for,
		status, last_error, rendered_text, render_meta, template_version, trace_id, ingest_run_id, finished_at, created_at, updated_at)
	select c.workspace_id, autopost.uuid_v7_of(p_now, v_salt || c.channel_id), v_message_id, c.channel_id, autopost.hash_version(), v_hash, p_now, v_scheduled,
		r.value ->> 'verdict',
		case when r.value ->> 'verdict' = 'failed_permanent' then jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery',
			'code', 'validation_failed', 'known', true, 'message', r.value ->> 'reason') end,
		coalesce(r.value ->> 'text', ''), coalesce(r.value -> 'meta', '{}'), coalesce(r.value ->> 'template_version', 'text-1'), v_trace_id, p_run_id,
		case when r.value ->> 'verdict' = 'failed_permanent' then p_now end, p_now, p_now
	from unnest(v_ids, v_choices) u (channel_id, choice)
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = u.channel_id
	join jsonb_each(v_renders) r on r.key = u.choice
	where r.value ->> 'verdict' <> 'skipped'
	and (v_fresh or not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.content_hash = v_hash and d.channel_id = c.channel_id and d.hash_version = autopost.hash_version()
		and d.status in ('queued', 'claimed', 'sending', 'retry') offset 0))
	and (v_fresh or not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.content_hash = v_hash and d.channel_id = c.channel_id and d.hash_version = autopost.hash_version()
		and d.status = 'sent' and d.sent_at > p_now - make_interval(hours => coalesce(c.dedup_ttl_hours, 168)) offset 0))
	order by c.channel_id
	on conflict (workspace_id, content_hash, channel_id, hash_version) where status in ('queued', 'claimed', 'sending', 'retry') do nothing;

	select coalesce(jsonb_object_agg(d.channel_id, jsonb_build_object('channel_id', d.channel_id, 'delivery_id', d.delivery_id, 'status', d.status,
		'reason', d.last_error ->> 'message')), '{}') into v_made
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id
	and d.message_id = v_message_id
	and d.trace_id = v_trace_id;
	return autopost.fan_out_answer(p_workspace_id, p_post || jsonb_build_object('run_id', p_run_id), v_ids, v_choices, v_renders, v_made)
		|| jsonb_build_object('due', greatest(p_now, v_scheduled));
end
$$;

create or replace function autopost.fan_out_answer(
	p_workspace_id text, p_post jsonb, p_ids text[], p_choices text[], p_renders jsonb, p_made jsonb
) returns jsonb
language plpgsql
as $$
-- Counts and names what became of each routed channel, and writes the events of it: enqueue once, validation_failed each,
-- dedup_suppressed each up to 1,000, above that once with the channels in meta.
-- Writes: events.
declare
	v_answers jsonb;
	v_deduped text[];
	v_message_id uuid := (p_post ->> 'message_id')::uuid;
	v_meta jsonb := jsonb_build_object('trace_id', p_post -> 'trace_id', 'run_id', p_post -> 'run_id');
	v_counts jsonb;
begin
	select coalesce(jsonb_agg(coalesce(p_made -> u.channel_id, jsonb_build_object('channel_id', u.channel_id,
			'status', case when p_renders -> u.choice ->> 'verdict' = 'skipped' then 'skipped' else 'deduped' end,
			'reason', coalesce(p_renders -> u.choice ->> 'reason', 'the channel has this content already'))) order by u.channel_id), '[]')
	into v_answers
	from unnest(p_ids, p_choices) u (channel_id, choice);
	select array_agg(a.value ->> 'channel_id') filter (where a.value ->> 'status' = 'deduped'),
		jsonb_build_object(
			'enqueued', count(*) filter (where a.value ->> 'status' = 'queued'),
			'deduped', count(*) filter (where a.value ->> 'status' = 'deduped'),
			'invalid', count(*) filter (where a.value ->> 'status' = 'failed_permanent'),
			'skipped', count(*) filter (where a.value ->> 'status' = 'skipped'),
			'armed', coalesce(jsonb_agg(a.value -> 'channel_id') filter (where a.value ->> 'status' = 'queued'), '[]'))
	into v_deduped, v_counts
	from jsonb_array_elements(v_answers) a;

	perform autopost.emit_note(p_workspace_id, 'enqueue', 'ok', null, v_message_id, null, v_meta || (v_counts - 'armed'));
	insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, error, meta)
	select p_workspace_id, gen_random_uuid(), (a.value ->> 'delivery_id')::uuid, v_message_id, a.value ->> 'channel_id', autopost.now_ts(), 'validation_failed', 0, 'error',
		jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery', 'code', 'validation_failed', 'message', a.value -> 'reason'), v_meta
	from jsonb_array_elements(v_answers) a
	where a.value ->> 'status' = 'failed_permanent';
	if cardinality(v_deduped) > 1000 then
		perform autopost.emit_note(p_workspace_id, 'dedup_suppressed', 'ok', null, v_message_id, null, v_meta || jsonb_build_object('channels', v_deduped));
	else
		insert into autopost.events (workspace_id, id, message_id, channel_id, ts, action, attempt, result, meta)
		select p_workspace_id, gen_random_uuid(), v_message_id, u.channel_id, autopost.now_ts(), 'dedup_suppressed', 0, 'ok', v_meta
		from unnest(v_deduped) u (channel_id);
	end if;
	return v_counts || jsonb_build_object('deliveries', (select coalesce(jsonb_agg(a.value order by a.ordinality), '[]')
		from jsonb_array_elements(v_answers) with ordinality a where a.ordinality <= 1000));
end
$$;
