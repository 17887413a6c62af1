-- Makes deliveries in sets. p_post comes from frozen_post: all facts as they were when the post arrived.

create or replace function autopost.frozen_post(p_post jsonb, p_run_id uuid, p_now timestamptz) returns jsonb
language sql stable
as $$
-- Purpose: a prepared post with its message, as fan-out takes it now or later: {"payload",
--          "content_hash", "message_id", "run_id", "trace_id", "tags", "include", "exclude",
--          "scheduled_for", "not_before", "remove_at", "slot" and "fixed" if set, "urls" of
--          source_urls, "decided", "approved"}. "tags" are those of the post and of its source.
--          "include" and "exclude" are null if unset. A decided post also goes to moderated channels;
--          a fixed one goes to all of "include", whatever their filters. "approved" has the digest of
--          each approved text by rendering.
select jsonb_build_object(
	'payload', p_post -> 'payload', 'content_hash', p_post -> 'content_hash', 'message_id', p_post -> 'message_id',
	'run_id', p_run_id, 'trace_id', p_post -> 'trace_id',
	'tags', (p_post -> 'tags') || coalesce(p_post -> 'route_tags', '[]'),
	'decided', p_post -> 'decided', 'approved', p_post -> 'approved',
	'include', coalesce(p_post -> 'channels', p_post -> 'raw' -> 'routing' -> 'include_channels'), 'exclude',
		p_post -> 'raw' -> 'routing' -> 'exclude_channels',
	'scheduled_for', autopost.timestamp_of(p_post -> 'raw' ->> 'scheduled_for'), 'not_before', p_now)
	|| case when p_post -> 'raw' ? 'remove_at' then jsonb_build_object('remove_at',
		autopost.timestamp_of(p_post -> 'raw' ->> 'remove_at')) else '{}' end
	|| case when p_post -> 'raw' ? 'slot' then jsonb_build_object('slot', p_post -> 'raw' -> 'slot') else '{}' end
	|| case when p_post ? 'fixed' then '{"fixed": true}' else '{}'::jsonb end
	|| autopost.source_urls(p_post -> 'raw')
$$;

create or replace function autopost.due_of(p_post jsonb) returns timestamptz
language sql stable
as $$
-- Purpose: the due time of the deliveries of a frozen post.
select greatest((p_post ->> 'not_before')::timestamptz, (p_post ->> 'scheduled_for')::timestamptz)
$$;

create or replace function autopost.texts_of(p_array jsonb) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: a JSON array of texts; null for any other value.
begin
	return (
		select array(select jsonb_array_elements_text(p_array)) where jsonb_typeof(p_array) = 'array');
end
$$;

create or replace function autopost.last_channel(p_workspace_id text) returns text
language plpgsql stable set enable_sort = off
as $$
-- Purpose: the last channel of a workspace; null if none. Sorts are off, as in next_due: for a workspace that is new
--          since ANALYZE, the planner would read and sort all channels.
-- Reads:   channels.
begin
	return (
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id
		order by c.channel_id desc limit 1);
end
$$;

create or replace function autopost.route_post(
	p_workspace_id text, p_post jsonb, p_after text, p_limit int,
	out ids text[], out ttls int[], out choices int[], out renderings jsonb
)
language plpgsql stable
as $$
-- Purpose: the channels after p_after that get a post, in their order, at most p_limit: ids, dedup
--          windows in hours, and for each channel the index of its rendering, from 1. It reads
--          ranges of the primary key, so that no plan reads all channels for a few. Channels with
--          equal columns form a kind, which is rendered as its first channel: most posts have few.
-- Reads:   channels.
declare
	v_payload jsonb := p_post -> 'payload';
	v_tags text[] := autopost.texts_of(p_post -> 'tags');
	v_include text[] := autopost.texts_of(p_post -> 'include');
	v_exclude text[] := autopost.texts_of(p_post -> 'exclude');
	v_first text := (select min(i.channel_id) from unnest(v_include) i (channel_id));
	v_last text := (select max(i.channel_id) from unnest(v_include) i (channel_id));
	v_decided boolean := coalesce(p_post -> 'decided' = 'true', false);
	v_fixed boolean := p_post ? 'fixed';
	-- true if a rendering depends on more than the columns of a kind
	v_apart boolean := v_payload ? 'variants' or coalesce(v_payload -> 'media' @? '$[*].auth_ref', false);
begin
	v_last := coalesce(v_last, autopost.last_channel(p_workspace_id));
	with kinds as materialized (
		select array_agg(r.channel_id) as ids, array_agg(r.ttl) as ttls
		from (
			select c.channel_id, coalesce(c.dedup_ttl_hours, 168) as ttl, c.platform, c.send_mode, c.template_ref,
				c.settings, case when v_apart then c.channel_id end as apart
			from autopost.channels c
			where c.workspace_id = p_workspace_id
			and c.channel_id > p_after
			and c.channel_id between coalesce(v_first, '') and v_last
			and case when v_fixed then c.channel_id = any (v_include)
				else autopost.is_routed(row(c.*)::autopost.channels, v_tags, v_include, v_exclude) end
			and (v_decided or not c.moderated)
			order by c.channel_id
			limit p_limit) r
		group by r.platform, r.send_mode, r.template_ref, r.settings, r.apart
	), shown as materialized (
		select k.ids, k.ttls, f.rendering
		from kinds k
		cross join lateral (
			select autopost.rendering_of(v_payload, row(c.*)::autopost.channels) as rendering
			from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = k.ids[1] limit 1) f
	), ways as materialized (
		select d.rendering, row_number() over ()::int as n from (select distinct s.rendering from shown s) d
	)
	select array_agg(r.channel_id), array_agg(r.ttl), array_agg(r.n),
		(select jsonb_agg(autopost.rendering_choice(k.rendering) order by k.n) from ways k)
	into ids, ttls, choices, renderings
	from (
		select u.channel_id, u.ttl, w.n
		from shown s
		full join ways w using (rendering) -- full, though each row matches: the planner never uses a nested loop for it
		cross join lateral unnest(s.ids, s.ttls) u (channel_id, ttl)
		order by u.channel_id) r;
end
$$;

create or replace function autopost.is_altered(p_approved jsonb, p_rendering jsonb, p_text text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a rendering was approved with another text. A rendering that was not in the plan,
--          such as that of a new channel, is not altered. p_approved: digests of texts by rendering
--          key.
select coalesce(p_approved ->> md5(p_rendering::text) <> md5(p_text), false)
$$;

create or replace function autopost.fan_out_to(
	p_workspace_id text, p_post jsonb, p_job_id uuid, p_fresh boolean, p_ids text[], p_ttls int[], p_choices int[],
		p_renderings jsonb, p_now timestamptz,
	out counts jsonb, out armed text[], out dropped text[], out deliveries jsonb
)
language plpgsql
as $$
-- Purpose: makes the deliveries of a post for the channels from route_post. It renders once per
--          rendering, drops content that was sent or is open, and inserts. The caller has locked
--          the message. p_fresh: the content is new, so no earlier delivery can exist; otherwise
--          the snapshot of the insert sees every earlier delivery. With the setting
--          dedup_audit_rows, dropped channels get a delivery with status deduped.
-- Returns: the counts; the channels to arm; the dropped channels; the results of the first 1,000
--          (none for a job). With a slot the caller holds lock_slots of the channels.
-- Reads:   channels, platforms, media_origin, deliveries; as free_slot.
-- Writes:  deliveries, post_acts, events (validation_failed).
declare
	v_verdicts text[];
	v_errors jsonb[];
	v_texts text[];
	v_metas jsonb[];
	v_templates text[];
	v_hash text := p_post ->> 'content_hash';
	v_message_id uuid := (p_post ->> 'message_id')::uuid;
	v_run_id uuid := (p_post ->> 'run_id')::uuid;
	v_trace_id uuid := (p_post ->> 'trace_id')::uuid;
	v_not_before timestamptz := (p_post ->> 'not_before')::timestamptz;
	v_scheduled timestamptz := (p_post ->> 'scheduled_for')::timestamptz;
	-- Ids of version 7 by counting: an instant, then numbers from a random start.
	v_instant text := left(replace(autopost.uuid_v7_of(p_now, '')::text, '-', ''), 17);
	v_place bigint := (1::bigint << 56) + (random() * (1::bigint << 58))::bigint;
	v_made text[];
	v_fates text[]; -- results that differ from the verdicts
	v_audited boolean := false;
	v_slots jsonb;
begin
	select s.verdicts, s.errors, s.texts, s.metas, s.templates into v_verdicts, v_errors, v_texts, v_metas, v_templates
	from autopost.show_post(p_workspace_id, p_post -> 'payload', p_post -> 'tags', p_renderings) s;
	for v_n in 1 .. coalesce(cardinality(v_texts), 0) loop
		if v_verdicts[v_n] = 'queued' and autopost.is_altered(p_post -> 'approved', p_renderings -> v_n - 1,
			autopost.shown_texts(v_texts[v_n], autopost.later_texts(v_metas[v_n]))) then
			v_verdicts[v_n] := 'failed_permanent';
			v_errors[v_n] := '{"category": "PERMANENT", "scope": "delivery", "code": "validation_failed", "known": true, "message": "the text changed after its approval"}';
		end if;
	end loop;
	if p_fresh then
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash,
			not_before, scheduled_for,
			status, last_error, rendered_text, render_meta, template_version, trace_id, ingest_run_id, enqueue_batch_id,
				finished_at, created_at, updated_at)
		select p_workspace_id, (v_instant || to_hex(v_place + u.n))::uuid, v_message_id, u.channel_id,
			autopost.hash_version(), v_hash, v_not_before, v_scheduled,
			v_verdicts[u.choice], v_errors[u.choice], v_texts[u.choice], v_metas[u.choice], v_templates[u.choice],
				v_trace_id, v_run_id, p_job_id,
			case when v_verdicts[u.choice] = 'failed_permanent' then p_now end, p_now, p_now
		from unnest(p_ids, p_choices) with ordinality u (channel_id, choice, n)
		where v_verdicts[u.choice] <> 'skipped'
		order by u.n;
	else
		with made as (
			insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version,
				content_hash, not_before, scheduled_for,
				status, last_error, rendered_text, render_meta, template_version, trace_id, ingest_run_id,
					enqueue_batch_id, finished_at, created_at, updated_at)
			select p_workspace_id, (v_instant || to_hex(v_place + u.n))::uuid, v_message_id, u.channel_id,
				autopost.hash_version(), v_hash, v_not_before, v_scheduled,
				v_verdicts[u.choice], v_errors[u.choice], v_texts[u.choice], v_metas[u.choice], v_templates[u.choice],
					v_trace_id, v_run_id, p_job_id,
				case when v_verdicts[u.choice] = 'failed_permanent' then p_now end, p_now, p_now
			from unnest(p_ids, p_ttls, p_choices) with ordinality u (channel_id, ttl, choice, n)
			where v_verdicts[u.choice] <> 'skipped'
			and not exists (
				select 1 from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.content_hash = v_hash and d.channel_id = u.channel_id
					and d.hash_version = autopost.hash_version()
				and d.phase in ('active', 'claimed', 'retry') offset 0)
			and not exists (
				select 1 from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.message_id = v_message_id and d.channel_id = u.channel_id
				and (d.phase = 'deduped') is false and d.status = 'sent' and d.sent_at > p_now - make_interval(hours => u.ttl) offset 0)
			order by u.n
			on conflict (workspace_id, content_hash, channel_id, hash_version)
				where phase in ('active', 'claimed', 'retry') do nothing
			returning channel_id
		)
		select array_agg(m.channel_id) into v_made from made m;
		-- A full join, as in route_post.
		select array_agg(case when m.channel_id is null and v_verdicts[u.choice] <> 'skipped' then 'deduped'
			else v_verdicts[u.choice] end order by u.n) into v_fates
		from unnest(p_ids, p_choices) with ordinality u (channel_id, choice, n)
		full join unnest(v_made) m (channel_id) on m.channel_id = u.channel_id;
		v_audited := 'deduped' = any (v_fates) and autopost.setting_is_on('dedup_audit_rows');
	end if;
	if v_audited then
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash,
			not_before, scheduled_for,
			status, rendered_text, render_meta, template_version, trace_id, ingest_run_id, enqueue_batch_id,
				finished_at, created_at, updated_at)
		select p_workspace_id, (v_instant || to_hex(v_place + u.n))::uuid, v_message_id, u.channel_id,
			autopost.hash_version(), v_hash, v_not_before, v_scheduled,
			'deduped', v_texts[u.choice], v_metas[u.choice], v_templates[u.choice], v_trace_id, v_run_id, p_job_id,
				p_now, p_now, p_now
		from unnest(p_ids, p_choices, v_fates) with ordinality u (channel_id, choice, fate, n)
		where u.fate = 'deduped';
	end if;

	select jsonb_build_object(
			'enqueued', count(*) filter (where u.fate = 'queued'), 'deduped',
				count(*) filter (where u.fate = 'deduped'),
			'invalid', count(*) filter (where u.fate = 'failed_permanent'), 'skipped',
				count(*) filter (where u.fate = 'skipped')),
		coalesce(array_agg(u.channel_id) filter (where u.fate = 'queued'), '{}'),
		array_agg(u.channel_id) filter (where u.fate = 'deduped'),
		coalesce(jsonb_agg(jsonb_build_object('channel_id', u.channel_id, 'status', u.fate,
			'reason', case u.fate when 'deduped' then 'the channel has this content already'
				else v_errors[u.choice] ->> 'message' end)
			|| case when u.fate in ('queued', 'failed_permanent') or u.fate = 'deduped'
				and v_audited then jsonb_build_object('delivery_id', (v_instant || to_hex(v_place + u.n))::uuid)
				else '{}' end)
			filter (where p_job_id is null and u.n <= 1000), '[]')
	into counts, armed, dropped, deliveries
	from (
		select f.channel_id, f.choice, f.n, coalesce(f.fate, v_verdicts[f.choice]) as fate
		from unnest(p_ids, p_choices, v_fates) with ordinality f (channel_id, choice, fate, n)) u;

	if p_post ? 'slot' and cardinality(p_ids) > 0 then
		v_slots := autopost.take_slots(p_workspace_id, (v_instant || to_hex(v_place + 1))::uuid,
			(v_instant || to_hex(v_place + cardinality(p_ids)))::uuid);
		select coalesce(jsonb_agg(e.value || case when v_slots ? (e.value ->> 'delivery_id')
			then jsonb_build_object('scheduled_for', v_slots -> (e.value ->> 'delivery_id')) else '{}' end
				order by e.ordinality),
			'[]') into deliveries
		from jsonb_array_elements(deliveries) with ordinality e;
	end if;
	if p_post ? 'remove_at' and cardinality(p_ids) > 0 then
		perform autopost.plan_removals(p_workspace_id, (v_instant || to_hex(v_place + 1))::uuid,
			(v_instant || to_hex(v_place + cardinality(p_ids)))::uuid, (p_post ->> 'remove_at')::timestamptz);
	end if;
	if counts -> 'invalid' <> '0' then
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
			error, meta)
		select p_workspace_id, gen_random_uuid(), (v_instant || to_hex(v_place + u.n))::uuid, v_message_id,
			u.channel_id, autopost.now_ts(), 'validation_failed', 0, 'error',
			v_errors[u.choice] - 'known', jsonb_build_object('trace_id', v_trace_id, 'run_id', v_run_id)
		from unnest(p_ids, p_choices, v_fates) with ordinality u (channel_id, choice, fate, n)
		where coalesce(u.fate, v_verdicts[u.choice]) = 'failed_permanent';
	end if;
end
$$;

create or replace function autopost.record_fan_out(p_workspace_id text, p_post jsonb, p_counts jsonb) returns void
language plpgsql
as $$
-- Purpose: writes the enqueue event of a message and run with the counts of all its channels.
-- Writes:  events.
begin
	perform autopost.emit_note(p_workspace_id, 'enqueue', 'ok', null, (p_post ->> 'message_id')::uuid, null,
		jsonb_build_object('trace_id', p_post -> 'trace_id', 'run_id', p_post -> 'run_id') || p_counts);
end
$$;

create or replace function autopost.record_dropped(p_workspace_id text, p_post jsonb, p_dropped text[], p_before int)
	returns void
language plpgsql
as $$
-- Purpose: writes dedup_suppressed for the channels that already had the content: one event each up
--          to 1,000 per post, including p_before of earlier ranges of its job; above that one event
--          with the channels in meta.
-- Writes:  events.
declare
	v_message_id uuid := (p_post ->> 'message_id')::uuid;
	v_meta jsonb := jsonb_build_object('trace_id', p_post -> 'trace_id', 'run_id', p_post -> 'run_id');
begin
	if cardinality(p_dropped) + p_before > 1000 then
		perform autopost.emit_note(p_workspace_id, 'dedup_suppressed', 'ok', null, v_message_id, null,
			v_meta || jsonb_build_object('channels', p_dropped));
	else
		insert into autopost.events (workspace_id, id, message_id, channel_id, ts, action, attempt, result, meta)
		select p_workspace_id, gen_random_uuid(), v_message_id, u.channel_id, autopost.now_ts(), 'dedup_suppressed', 0,
			'ok', v_meta
		from unnest(p_dropped) u (channel_id);
	end if;
end
$$;
