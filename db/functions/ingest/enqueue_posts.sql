create or replace function autopost.planning() returns boolean
language sql stable
as $$
-- Purpose: true for a dry run, whose rows are rolled back. It must show all rows and defer none.
select coalesce(current_setting('autopost.planning', true), '') = 'on'
$$;

create or replace function autopost.source_of(p_workspace_id text, p_run_id uuid, p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: messages.source: {"kind", "endpoint_id", "source_id"} of the run, and "fields": the
--          unknown fields of the post, if it has any.
-- Reads:   ingest_runs.
begin
	return (select jsonb_build_object('kind', r.kind, 'endpoint_id', r.endpoint_id, 'source_id', r.source_id)
		|| case when jsonb_typeof(p_fields) = 'object' then jsonb_build_object('fields', p_fields) else '{}' end
	from autopost.ingest_runs r
	where r.workspace_id = p_workspace_id and r.run_id = p_run_id);
end
$$;

create or replace function autopost.message_with(p_workspace_id text, p_content_hash text) returns uuid
language plpgsql stable
as $$
-- Purpose: the message with this content, or null.
-- Reads:   messages.
begin
	return (select m.message_id from autopost.messages m
		where m.workspace_id = p_workspace_id and m.hash_version = autopost.hash_version()
			and m.content_hash = p_content_hash);
end
$$;

create or replace function autopost.upsert_message(p_workspace_id text, p_post jsonb, p_run_id uuid, p_now timestamptz)
	returns jsonb
language plpgsql
as $$
-- Purpose: stores the content once. For known content it changes last_* and seen_count, keeps
--          everything else and records differing tags. The row lock makes enqueues of the same
--          content wait for each other. An approved part of a message ("part_of") is not a repeat.
-- Returns: {"message_id", "fresh"}.
-- Locks:   messages.
-- Writes:  messages, events (message_tag_mismatch).
declare
	v_tags text[] := array(select jsonb_array_elements_text(p_post -> 'tags'));
	v_message autopost.messages;
	v_fresh boolean;
begin
	if p_post ? 'part_of' then
		select m.* into v_message from autopost.messages m
		where m.workspace_id = p_workspace_id and m.message_id = (p_post ->> 'part_of')::uuid
			and m.content_hash = p_post ->> 'content_hash'
		for no key update of m;
		if found then
			return jsonb_build_object('message_id', v_message.message_id, 'fresh', false);
		end if;
	end if;
	insert into autopost.messages as m (workspace_id, message_id, hash_version, content_hash, normalization_version,
		payload, tags,
		source, source_ref, first_seen_trace_id, first_ingest_run_id, last_seen_at, last_ingest_run_id, created_at)
	values (p_workspace_id, autopost.new_id(), autopost.hash_version(), p_post ->> 'content_hash',
		autopost.hash_version(), p_post -> 'payload', v_tags,
		autopost.source_of(p_workspace_id, p_run_id, p_post -> 'fields'), p_post ->> 'source_ref',
			(p_post ->> 'trace_id')::uuid, p_run_id, p_now, p_run_id, p_now)
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

create or replace function autopost.credential_errors(p_workspace_id text, p_media jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of the credentials of platform ids: an id is valid for one credential, so its
--          auth_ref is required if the channels have several.
-- Reads:   channels, channel_auth.
declare
	v_refs text[];
begin
	if not coalesce(p_media @? '$[*] ? (exists (@.file_id) || exists (@.attachment_token))', false) then
		return '[]';
	end if;
	v_refs := array(
		select distinct coalesce(a.auth_ref, c.auth_ref) from autopost.channels c
		left join autopost.channel_auth a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = p_workspace_id);
	return (
		select coalesce(jsonb_agg(autopost.field_error(format('media[%s].auth_ref', m.ordinality - 1), x.reason,
			'name the credential of the id: autopost credential list') -> 0 order by m.ordinality), '[]')
		from jsonb_array_elements(p_media) with ordinality m
		cross join lateral (select case
			when m.value ->> 'auth_ref' <> all (v_refs) then format('must be the credential of a channel, got %s',
				m.value ->> 'auth_ref')
			when not m.value ? 'auth_ref' and cardinality(v_refs) > 1
				then 'is missing, and the channels have several credentials' end as reason) x
		where m.value ?| '{file_id,attachment_token}' and x.reason is not null);
end
$$;

create or replace function autopost.unfetched_errors(p_media jsonb) returns jsonb
language sql stable
as $$
-- Purpose: the errors of media that are not in the media store. A dry run accepts them.
select coalesce(jsonb_agg(autopost.field_error(format('media[%s].url', m.ordinality - 1), 'must be fetched first',
	'give the post to receive_push or submit_post, or give a blob_ref') -> 0 order by m.ordinality), '[]')
from jsonb_array_elements(p_media) with ordinality m
where not autopost.planning() and not m.value ?| '{blob_ref,file_id,attachment_token}'
$$;

create or replace function autopost.entry_errors(p_workspace_id text, p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of a raw post in this workspace, with its media: [{field, reason, remedy}].
-- Reads:   media_origin.
declare
	v_errors jsonb := autopost.post_errors(p_workspace_id, p_raw);
begin
	if v_errors = '[]' and p_raw ? 'media' then
		return autopost.origin_errors(p_workspace_id, p_raw -> 'media')
			|| autopost.credential_errors(p_workspace_id, p_raw -> 'media');
	end if;
	return v_errors;
end
$$;

create or replace function autopost.prepare_post(p_workspace_id text, p_item jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a post and adds its normal form, hash and tags. p_item: {"raw", "trace_id",
--          "route_tags"}. With "unfetched": true its media may still be URLs.
-- Returns: the item with these fields, or {"errors"}.
declare
	v_raw jsonb := p_item -> 'raw';
	v_errors jsonb := autopost.entry_errors(p_workspace_id, v_raw);
	v_payload jsonb;
	v_unknown jsonb;
	v_fields jsonb;
begin
	if v_errors = '[]' and v_raw ? 'media' and not p_item ? 'unfetched' then
		v_errors := autopost.unfetched_errors(v_raw -> 'media');
	end if;
	if v_errors <> '[]' then
		return jsonb_build_object('errors', v_errors);
	end if;
	v_payload := autopost.normalize_payload(v_raw);
	v_unknown := autopost.unknown_fields(v_raw);
	if v_unknown <> '[]' then
		v_fields := (select jsonb_object_agg(f.key, f.value) from jsonb_each(v_raw) f where v_unknown ? f.key);
	end if;
	return p_item || jsonb_build_object(
		'payload', v_payload,
		'content_hash', autopost.content_hash(v_payload),
		'tags', to_jsonb(autopost.tags_of(v_raw, v_payload)),
		'source_ref', v_raw -> 'source_ref',
		'fields', v_fields);
end
$$;

create or replace function autopost.enqueue_post(
	p_workspace_id text, p_post jsonb, p_run_id uuid, p_now timestamptz, out answer jsonb, out armed text[],
		out due timestamptz
)
language plpgsql
as $$
-- Purpose: makes the deliveries of a post whose message is stored. If it has more channels than one
--          transaction should take, a job makes them. Moderated channels wait for a decision.
-- Returns: the enqueue answer; the channels whose gates the caller arms, and for when.
-- Writes:  deliveries or fanout_jobs, media_blobs, events.
declare
	v_post jsonb := autopost.frozen_post(p_post, p_run_id, p_now);
	-- a plan shows all channels at once
	v_most int := case when autopost.planning() then 1000000000 else autopost.setting('fanout_chunk_channels')::int end;
	v_route record;
	v_done record;
	v_held jsonb := '{}';
begin
	answer := jsonb_build_object('status', 'enqueued', 'run_id', p_run_id, 'trace_id', p_post -> 'trace_id',
		'message_id', p_post -> 'message_id');
	if autopost.planning() then
		v_post := v_post || '{"decided": true}';
	elsif p_post -> 'decided' is distinct from 'true' then
		v_held := autopost.hold_part(p_workspace_id, v_post, p_post);
	end if;
	select r.ids, r.ttls, r.choices, r.renderings into v_route
		from autopost.route_post(p_workspace_id, v_post, '', v_most + 1) r;
	if cardinality(v_route.ids) > v_most then
		answer := answer || autopost.open_fanout(p_workspace_id, v_post) || v_held;
		return;
	end if;
	select f.counts, f.armed, f.dropped, f.deliveries into v_done
	from autopost.fan_out_to(p_workspace_id, v_post, null, (p_post -> 'fresh')::boolean, v_route.ids, v_route.ttls,
		v_route.choices, v_route.renderings, p_now) f;
	perform autopost.record_fan_out(p_workspace_id, v_post, v_done.counts || v_held),
		autopost.record_dropped(p_workspace_id, v_post, v_done.dropped, 0),
		autopost.record_source_urls(p_workspace_id, v_post, v_route.ids);
	answer := answer || v_done.counts || jsonb_build_object('fanout', 'done', 'deliveries', v_done.deliveries)
		|| v_held;
	if v_done.counts @> '{"enqueued": 0, "invalid": 0}' and v_done.counts -> 'deduped' <> '0' and v_held = '{}' then
		answer := answer || '{"status": "duplicate"}';
	end if;
	armed := v_done.armed;
	due := autopost.due_of(v_post);
end
$$;

create or replace function autopost.lock_slots_of(p_workspace_id text, p_posts jsonb[], p_run_id uuid,
	p_now timestamptz)
	returns void
language plpgsql
as $$
-- Purpose: locks the slots of all channels of posts that take the next free one, before any message.
--          A post with more channels than one transaction takes locks them in its job.
-- Locks:   as lock_slots.
-- Reads:   channels.
declare
	v_most int := case when autopost.planning() then 1000000000 else autopost.setting('fanout_chunk_channels')::int end;
begin
	perform autopost.lock_slots(p_workspace_id, array(
		select distinct c.id from unnest(p_posts) p (post)
		cross join lateral autopost.route_post(p_workspace_id, autopost.frozen_post(p.post, p_run_id, p_now)
			|| '{"decided": true}', '', v_most + 1) r
		cross join lateral unnest(r.ids) c (id)
		where p.post -> 'raw' ? 'slot' and not p.post ? 'errors' and cardinality(r.ids) <= v_most));
end
$$;

create or replace function autopost.enqueue_posts(p_workspace_id text, p_items jsonb, p_run_id uuid, p_now timestamptz)
	returns jsonb
language plpgsql
as $$
-- Purpose: the only way into the queue, for one or many posts. It writes all messages in the order
--          of their hashes, then the deliveries, and last the gates of all channels with new
--          deliveries. p_items: [{"raw", "trace_id", "route_tags"}], for an approved post also
--          "decided": true, "approved", "channels" and "part_of".
-- Returns: the enqueue answers in the order of the items.
-- Locks:   media_origin (blob_ref, shared), for a slot quotas, budgets and channels, messages
--          (content_hash), channel_gates (channel_id), in this order; then media_origin (blob_ref) of
--          new messages.
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
	if p_items @? '$[*].raw.slot' then
		perform autopost.lock_slots_of(p_workspace_id, v_posts, p_run_id, v_now);
	end if;
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
	if p_items @? '$[*].raw.media' then
		perform autopost.count_references(p_workspace_id, array(
			select (p.post ->> 'message_id')::uuid from unnest(v_posts) p (post) where p.post -> 'fresh' = 'true'), 1);
	end if;
	perform autopost.note_hints(p_workspace_id, p_run_id, p_items);
	return to_jsonb(v_answers);
end
$$;
