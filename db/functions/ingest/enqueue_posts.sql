create or replace function autopost.planning() returns boolean
language sql stable
as $$
-- Purpose: true for a dry run, whose rows are rolled back. It must show all rows and defer none.
select coalesce(current_setting('autopost.planning', true), '') = 'on'
$$;

create or replace function autopost.upsert_message(p_workspace_id text, p_post jsonb, p_run_id uuid, p_now timestamptz)
	returns jsonb
language plpgsql
as $$
-- Purpose: stores the content once. For known content it changes last_* and seen_count, keeps
--          everything else and records differing tags. The row lock makes enqueues of the same
--          content wait for each other.
-- Returns: {"message_id", "fresh"}.
-- Locks:   messages.
-- Writes:  messages, events (message_tag_mismatch).
declare
	v_tags text[] := array(select jsonb_array_elements_text(p_post -> 'tags'));
	v_message autopost.messages;
	v_fresh boolean;
begin
	insert into autopost.messages as m (workspace_id, message_id, hash_version, content_hash, normalization_version,
		payload, tags,
		source, source_ref, first_seen_trace_id, first_ingest_run_id, last_seen_at, last_ingest_run_id, created_at)
	values (p_workspace_id, autopost.new_id(), autopost.hash_version(), p_post ->> 'content_hash',
		autopost.hash_version(), p_post -> 'payload', v_tags,
		p_post -> 'source', p_post ->> 'source_ref', (p_post ->> 'trace_id')::uuid, p_run_id, p_now, p_run_id, p_now)
	on conflict (workspace_id, hash_version, content_hash) do update
	set last_seen_at = excluded.last_seen_at, last_ingest_run_id = excluded.last_ingest_run_id,
		seen_count = m.seen_count + 1
	returning m.* into v_message;
	v_fresh := v_message.seen_count = 1;
	if v_message.tags is distinct from v_tags then
		perform autopost.emit_note(p_workspace_id, 'message_tag_mismatch', 'ok', null, v_message.message_id, null,
			jsonb_build_object('first_seen', v_message.tags, 'now', v_tags, 'run_id', p_run_id));
	end if;
	return jsonb_build_object('message_id', v_message.message_id, 'fresh', v_fresh);
end
$$;

create or replace function autopost.origin_errors(p_workspace_id text, p_media jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the media of a post that are missing in the workspace's media store, as [{field, reason,
--          remedy}].
-- Reads:   media_origin.
begin
	return (
		select coalesce(jsonb_agg(autopost.field_error(format('media[%s].blob_ref', m.ordinality - 1),
			'is not in the media origin',
			'put the content there first, or give its url') -> 0 order by m.ordinality), '[]')
		from jsonb_array_elements(coalesce(p_media, '[]')) with ordinality m
		where m.value ? 'blob_ref'
		and not exists (select 1 from autopost.media_origin o
			where o.workspace_id = p_workspace_id and o.blob_ref = m.value ->> 'blob_ref' and o.deleted_at is null));
end
$$;

create or replace function autopost.prepare_post(p_workspace_id text, p_item jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a post and adds its normal form, hash and tags. p_item: {"raw", "trace_id",
--          "route_tags"}.
-- Returns: the item with these fields, or {"errors"}.
-- Reads:   media_origin.
declare
	v_raw jsonb := p_item -> 'raw';
	v_errors jsonb := autopost.post_errors(p_workspace_id, v_raw);
	v_payload jsonb;
	v_unknown jsonb;
	v_source jsonb;
begin
	if v_errors = '[]' then
		v_errors := autopost.origin_errors(p_workspace_id, v_raw -> 'media');
	end if;
	if v_errors <> '[]' then
		return jsonb_build_object('errors', v_errors);
	end if;
	v_payload := autopost.normalize_payload(v_raw);
	v_unknown := autopost.unknown_fields(v_raw);
	if v_unknown <> '[]' then
		v_source := (select jsonb_object_agg(f.key, f.value) from jsonb_each(v_raw) f where v_unknown ? f.key);
	end if;
	return p_item || jsonb_build_object(
		'payload', v_payload,
		'content_hash', autopost.content_hash(v_payload),
		'tags', to_jsonb(autopost.tags_of(v_raw, v_payload)),
		'source_ref', v_raw -> 'source_ref',
		'source', v_source);
end
$$;

create or replace function autopost.enqueue_post(
	p_workspace_id text, p_post jsonb, p_run_id uuid, p_now timestamptz, out answer jsonb, out armed text[],
		out due timestamptz
)
language plpgsql
as $$
-- Purpose: makes the deliveries of a post whose message is stored. If it has more channels than one
--          transaction should take, a job makes them.
-- Returns: the enqueue answer; the channels whose gates the caller arms, and for when.
-- Writes:  deliveries or fanout_jobs, events.
declare
	v_post jsonb := autopost.frozen_post(p_post, p_run_id, p_now);
	-- a plan shows all channels at once
	v_most int := case when autopost.planning() then 1000000000 else autopost.setting('fanout_chunk_channels')::int end;
	v_route record;
	v_done record;
begin
	answer := jsonb_build_object('status', 'enqueued', 'run_id', p_run_id, 'trace_id', p_post -> 'trace_id',
		'message_id', p_post -> 'message_id');
	select r.ids, r.ttls, r.choices, r.renderings into v_route
		from autopost.route_post(p_workspace_id, v_post, '', v_most + 1) r;
	if cardinality(v_route.ids) > v_most then
		answer := answer || autopost.open_fanout(p_workspace_id, v_post);
		return;
	end if;
	select f.counts, f.armed, f.dropped, f.deliveries into v_done
	from autopost.fan_out_to(p_workspace_id, v_post, null, (p_post -> 'fresh')::boolean, v_route.ids, v_route.ttls,
		v_route.choices, v_route.renderings, p_now) f;
	perform autopost.record_fan_out(p_workspace_id, v_post, v_done.counts),
		autopost.record_dropped(p_workspace_id, v_post, v_done.dropped, 0);
	answer := answer || v_done.counts || jsonb_build_object('fanout', 'done', 'deliveries', v_done.deliveries);
	if v_done.counts @> '{"enqueued": 0, "invalid": 0}' and v_done.counts -> 'deduped' <> '0' then
		answer := answer || '{"status": "duplicate"}';
	end if;
	armed := v_done.armed;
	due := autopost.due_of(v_post);
end
$$;

create or replace function autopost.enqueue_posts(p_workspace_id text, p_items jsonb, p_run_id uuid, p_now timestamptz)
	returns jsonb
language plpgsql
as $$
-- Purpose: the only way into the queue, for one or many posts. It writes all messages in the order
--          of their hashes, then the deliveries, and last the gates of all channels with new
--          deliveries. p_items: [{"raw", "trace_id", "route_tags"}].
-- Returns: the enqueue answers in the order of the items.
-- Locks:   media_origin (blob_ref, shared), messages (content_hash), channel_gates (channel_id), in
--          this order.
declare
	v_posts jsonb[];
	v_post jsonb;
	v_done record;
	v_answers jsonb[] := '{}';
	v_at int;
	v_now timestamptz := p_now;
	v_armed text[] := '{}';
	v_due timestamptz := 'infinity';
begin
	perform autopost.hold_origins(p_workspace_id, p_items);
	select array_agg(autopost.prepare_post(p_workspace_id, i.value) order by i.ordinality) into v_posts
	from jsonb_array_elements(p_items) with ordinality i;
	for v_at in select o.n from unnest(v_posts) with ordinality o (post, n) where not o.post ? 'errors'
		order by o.post ->> 'content_hash', o.n loop
		v_posts[v_at] := v_posts[v_at] || autopost.upsert_message(p_workspace_id, v_posts[v_at], p_run_id, v_now);
	end loop;
	foreach v_post in array coalesce(v_posts, '{}') loop
		if v_post ? 'errors' then
			v_answers := v_answers || jsonb_build_object('status', 'rejected', 'run_id', p_run_id, 'errors',
				v_post -> 'errors');
			continue;
		end if;
		select e.answer, e.armed, e.due into v_done
			from autopost.enqueue_post(p_workspace_id, v_post, p_run_id, v_now) e;
		v_answers := v_answers || v_done.answer;
		v_armed := v_armed || v_done.armed;
		v_due := least(v_due, v_done.due);
		v_now := v_now + interval '1 microsecond'; -- keeps the order of posts within a channel
	end loop;
	perform autopost.arm_gates(p_workspace_id, v_armed, v_due) where v_armed <> '{}';
	perform autopost.note_hints(p_workspace_id, p_run_id, p_items);
	return to_jsonb(v_answers);
end
$$;
