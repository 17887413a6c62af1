-- Domain events: facts that other programs report, made into posts by templates.

create or replace function autopost.event_fields(p_event text) returns table (kind text, field text, is text,
	required boolean)
language sql immutable parallel safe
as $$
-- Purpose: the checked fields of the payload of a built-in event; no row for any other event.
select f.kind, f.field, f.type, f.required
from (values
	('MEDIA.IMAGE.GENERATED', 'image', 'avatarId', 'text', true), ('MEDIA.IMAGE.GENERATED', 'image', 'imageUrl',
		'url', true),
	('MEDIA.IMAGE.GENERATED', 'image', 'prompt', 'text', true), ('MEDIA.IMAGE.GENERATED', 'image', 'createdAt',
		'time', true),
	('MEDIA.VIDEO.GENERATED', 'video', 'avatarId', 'text', false), ('MEDIA.VIDEO.GENERATED', 'video', 'videoUrl',
		'url', true),
	('MEDIA.VIDEO.GENERATED', 'video', 'title', 'text', true), ('MEDIA.VIDEO.GENERATED', 'video', 'createdAt',
		'time', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'encounterId', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'winner.id', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'winner.name', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'loser.id', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'loser.name', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'summaryText', 'text', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'imageUrl', 'url', false),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'rounds', 'number', true),
	('COMBAT.SUMMARY.GENERATED', 'combat', 'createdAt', 'time', true)) f (event, kind, field, type, required)
where f.event = p_event
$$;

create or replace function autopost.event_value_error(p_value jsonb, p_is text, p_required boolean, p_field text)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the error of one field of an event; [] if it is valid.
declare
	v_rule text := case
		when coalesce(p_value, 'null') = 'null' then case when p_required then 'is missing' end
		when p_is = 'number' then case when jsonb_typeof(p_value) <> 'number' then 'must be a number' end
		when jsonb_typeof(p_value) <> 'string' or btrim(p_value #>> '{}') = '' then 'must be a text'
		when p_is = 'url' and autopost.canonical_url(p_value #>> '{}') is null then 'must be an http or https URL'
		when p_is = 'time' and autopost.timestamp_of(p_value #>> '{}') is null then 'must be a time with an offset' end;
begin
	return case when v_rule is null then '[]' else autopost.field_error('payload.' || p_field, v_rule || case
		when p_value <> 'null' then ', got ' || left(p_value::text, 60) else '' end, case p_is
		when 'number' then 'write a number' when 'url' then 'write https://…' when 'time'
			then 'write 2026-12-01T10:00:00Z'
		else 'write a text that is not empty' end) end;
end
$$;

create or replace function autopost.event_errors(p_workspace_id text, p_event jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of a domain event: [{field, reason, remedy}].
-- Reads:   event_types.
declare
	v_name text := case when jsonb_typeof(p_event -> 'event') = 'string' then p_event ->> 'event' end;
	v_kind text := (select min(f.kind) from autopost.event_fields(v_name) f);
	v_errors jsonb := '[]';
begin
	if jsonb_typeof(p_event) is distinct from 'object' then
		return autopost.field_error('event', 'must be an object', 'send {"event": "…", "payload": {…}}');
	elsif v_kind is null and not exists (select 1 from autopost.event_types t
		where t.workspace_id = p_workspace_id and t.event = v_name) then
		return autopost.field_error('event', format('must be a known event, got %s', left(coalesce(p_event ->> 'event',
			'null'), 100)),
				'use MEDIA.IMAGE.GENERATED, MEDIA.VIDEO.GENERATED, COMBAT.SUMMARY.GENERATED or an event type');
	elsif jsonb_typeof(p_event -> 'payload') is distinct from 'object' then
		return autopost.field_error('payload', 'must be an object', 'send the payload of the event');
	end if;
	if p_event ? 'source_ref' and (jsonb_typeof(p_event -> 'source_ref') <> 'string'
		or length(p_event ->> 'source_ref') not between 1 and 512) then
		v_errors := autopost.field_error('source_ref', 'must have 1 to 512 characters', 'send an id of the event');
	end if;
	if v_kind is null then
		return v_errors;
	elsif p_event -> 'payload' -> 'type' is distinct from to_jsonb(v_kind) then
		v_errors := v_errors || autopost.field_error('payload.type', format('must be %s, got %s', v_kind,
			coalesce(p_event -> 'payload' ->> 'type', 'null')), 'send the type of the event');
	end if;
	return v_errors || (
		select coalesce(jsonb_agg(e.value), '[]') from autopost.event_fields(v_name) f
		cross join lateral jsonb_array_elements(autopost.event_value_error(
			p_event -> 'payload' #> string_to_array(f.field, '.'), f.is, f.required, f.field)) e);
end
$$;

create or replace function autopost.event_medium(p_event jsonb, p_path text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the medium of a checked event, {"type", "url"}; null if it has none. p_path: the media_path of
--          an own event type.
declare
	v_payload jsonb := p_event -> 'payload';
	v_url text := case
		when p_path is not null then jsonb_path_query_first(v_payload, p_path::jsonpath, '{}', true) #>> '{}'
		when p_event ->> 'event' = 'MEDIA.VIDEO.GENERATED' then v_payload ->> 'videoUrl'
		when exists (select 1 from autopost.event_fields(p_event ->> 'event')) then v_payload ->> 'imageUrl' end;
begin
	if autopost.canonical_url(v_url) is null then
		return null;
	end if;
	return jsonb_build_object('url', v_url, 'type', case when p_event ->> 'event' = 'MEDIA.VIDEO.GENERATED'
		or (p_path is not null and v_url ~* '\.(mp4|mov|webm|m4v)([?#]|$)') then 'video' else 'image' end);
end
$$;

create or replace function autopost.event_hash(p_event jsonb, p_medium jsonb) returns text
language sql stable
as $$
-- Purpose: the hash that makes an event a duplicate: of the URL of its medium, else of the payload
--          without createdAt.
select encode(sha256(convert_to(coalesce(autopost.canonical_url(p_medium ->> 'url'),
	((p_event -> 'payload') - 'createdAt'::text)::text), 'UTF8')), 'hex')
$$;

create or replace function autopost.event_values(p_workspace_id text, p_event jsonb, p_hash text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the template variables of an event: the top-level scalars of the payload, and for built-in
--          events the names of 004.
-- Reads:   avatars.
begin
	return (select (select coalesce(jsonb_object_agg(v.key, v.value), '{}') from jsonb_each(p.payload) v
			where jsonb_typeof(v.value) in ('string', 'number', 'boolean') and v.value <> '""')
		|| jsonb_strip_nulls(jsonb_build_object(
			'short_hash', left(p_hash, 8),
			'avatar_name', coalesce(nullif(btrim(p.payload ->> 'avatarName'), ''),
				(select a.name from autopost.avatars a
				where a.workspace_id = p_workspace_id and a.avatar_id = p.payload ->> 'avatarId'),
				left(p.payload ->> 'avatarId', 8)),
			'winner_name', p.payload #> '{winner,name}', 'loser_name', p.payload #> '{loser,name}',
			'summary', p.payload -> 'summaryText'))
	from (select p_event -> 'payload' as payload) p);
end
$$;

create or replace function autopost.event_post(p_template autopost.templates, p_values jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the text of an event, cut to max_length of its template, or 260, as X counts.
-- Returns: {"text", "mode", "truncated", "length"}, or {"errors": [{field, reason, remedy}]}.
declare
	v_values jsonb := autopost.template_values(p_template, p_values);
	v_missing text[] := autopost.missing_values(p_template, v_values);
	v_filled jsonb;
	v_text text;
begin
	if v_missing <> '{}' then
		return jsonb_build_object('errors', (select jsonb_agg(autopost.field_error('payload', format(
			'has no value for {%s} of template %s', m.name, p_template.template_id),
			'send one, or write {' || m.name || '?} in the template') -> 0) from unnest(v_missing) m (name)));
	end if;
	v_filled := autopost.fill_template(p_template, v_values, null);
	if v_filled ? 'error' then
		return jsonb_build_object('errors', autopost.field_error('payload', v_filled ->> 'error',
			'send shorter values'));
	end if;
	v_text := autopost.shorten_text(v_filled ->> 'text', v_filled ->> 'mode' = 'HTML',
		coalesce(p_template.max_length, 260), 'weighted');
	return jsonb_build_object('text', v_text, 'mode', v_filled -> 'mode', 'truncated', v_text <> v_filled ->> 'text',
		'length', autopost.length_in(v_text, v_filled ->> 'mode' = 'HTML', 'weighted'));
end
$$;

create or replace function autopost.event_facts(p_workspace_id text, p_event jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: everything that follows from a domain event and the configuration.
-- Returns: {"type", "hash", "raw": the post, "template": "name@version", "template_key", "truncated",
--          "media_type", "media_url", "avatar_ids", "encounter_id", "enabled", "moderated", "meta"}; or
--          {"errors": [{field, reason, remedy}]}.
-- Reads:   event_types, templates, avatars, x_post_config, settings, channels.
declare
	v_errors jsonb := autopost.event_errors(p_workspace_id, p_event);
	v_type autopost.event_types;
	v_kind text := (select min(f.kind) from autopost.event_fields(p_event ->> 'event') f);
	v_payload jsonb := p_event -> 'payload';
	v_config jsonb := autopost.x_config(p_workspace_id);
	v_template autopost.templates;
	v_medium jsonb;
	v_hash text;
	v_text jsonb;
begin
	if v_errors <> '[]' then
		return jsonb_build_object('errors', v_errors);
	end if;
	select t.* into v_type from autopost.event_types t
	where t.workspace_id = p_workspace_id and t.event = p_event ->> 'event' and v_kind is null;
	v_medium := autopost.event_medium(p_event, v_type.media_path);
	v_hash := autopost.event_hash(p_event, v_medium);
	v_template := case when v_kind is not null then autopost.x_template(p_workspace_id, v_kind)
		else autopost.newest_template(p_workspace_id, v_type.template_id, 'x') end;
	if v_template.template_id is null then
		return jsonb_build_object('errors', autopost.field_error('event', format('needs template %s',
			v_type.template_id),
			'create the template first'));
	end if;
	v_text := autopost.event_post(v_template, autopost.event_values(p_workspace_id, p_event, v_hash));
	if v_text ? 'errors' then
		return v_text;
	end if;
	return jsonb_build_object('type', coalesce(v_kind, v_type.event), 'hash', v_hash, 'template_key',
		v_template.template_id, 'template', v_template.template_id || '@' || v_template.version,
		'truncated', v_text -> 'truncated', 'media_type', coalesce(v_medium ->> 'type', 'none'), 'media_url',
			v_medium -> 'url',
		'raw', jsonb_strip_nulls(jsonb_build_object('text', v_text -> 'text', 'parse_mode', nullif(v_text ->> 'mode',
			'None'),
			'media', case when v_medium is not null then jsonb_build_array(v_medium) end,
			'tags', nullif(to_jsonb(v_type.tags), '[]'))),
		'avatar_ids', (select coalesce(jsonb_agg(i.id), '[]') from (values (v_payload -> 'avatarId'),
			(v_payload #> '{winner,id}'), (v_payload #> '{loser,id}')) i (id) where jsonb_typeof(i.id) = 'string'),
		'encounter_id', v_payload -> 'encounterId',
		'enabled', case when v_kind is null then v_type.enabled else (v_config -> 'enabled')::boolean and (v_config
			-> ('enable' || case v_kind when 'combat' then 'Combat' else initcap(v_kind) || 's' end))::boolean end,
		'moderated', case when v_kind is null then v_type.moderated else (v_config -> 'moderation.enabled')::boolean
			or coalesce((select c.moderated from autopost.channels c where c.workspace_id = p_workspace_id
				and c.channel_id = autopost.x_channel(p_workspace_id)), false) end,
		'meta', jsonb_build_object('prompt', v_payload -> 'prompt', 'summaryText', v_payload -> 'summaryText',
			'rounds', v_payload -> 'rounds', 'title', v_payload -> 'title', 'truncated', v_text -> 'truncated'));
end
$$;

create or replace function autopost.has_failed(p_submission autopost.submissions) returns boolean
language sql stable
as $$
-- Purpose: true if a submission of an event ended without a post.
-- Reads:   deliveries.
select p_submission.status in ('failed', 'rejected', 'expired')
	or (p_submission.status = 'skipped' and not p_submission.event_facts ? 'backfill')
	or (p_submission.status = 'enqueued' and coalesce((select d.status in ('failed_permanent', 'dead')
		from autopost.event_delivery(p_submission) d), p_submission.answer -> 'enqueued' = '0'))
$$;

create or replace function autopost.take_event_hash(p_workspace_id text, p_type text, p_hash text,
	p_submission_id uuid) returns uuid
language plpgsql
as $$
-- Purpose: gives the hash of an event to a submission, unless another one has it. A submission that
--          ended without a post, and one whose time is over, lose it.
-- Returns: the submission that keeps the hash; null if it was given.
-- Locks:   event_hashes.
-- Writes:  event_hashes.
declare
	v_holder uuid;
	v_until timestamptz := autopost.now_ts() + autopost.setting_interval('delivery_retention_days');
begin
	insert into autopost.event_hashes (workspace_id, event_type, hash, submission_id, expires_at)
	values (p_workspace_id, p_type, p_hash, p_submission_id, v_until)
	on conflict (workspace_id, event_type, hash) do nothing;
	if found then
		return null;
	end if;
	select h.submission_id into v_holder from autopost.event_hashes h
	where h.workspace_id = p_workspace_id and h.event_type = p_type and h.hash = p_hash
	for no key update of h;
	if v_holder <> p_submission_id and not exists (select 1 from autopost.submissions s
			where s.workspace_id = p_workspace_id and s.submission_id = v_holder
				and autopost.has_failed(row(s.*)::autopost.submissions))
		and not exists (select 1 from autopost.event_hashes h where h.workspace_id = p_workspace_id
			and h.event_type = p_type and h.hash = p_hash and h.expires_at <= autopost.now_ts()) then
		return v_holder;
	end if;
	update autopost.event_hashes h set submission_id = p_submission_id, expires_at = v_until
	where h.workspace_id = p_workspace_id and h.event_type = p_type and h.hash = p_hash;
	return null;
end
$$;

create or replace function autopost.start_event(p_submission autopost.submissions) returns jsonb
language plpgsql
as $$
-- Purpose: starts a new or retried submission of an event: its media are fetched, a person is asked, or
--          it is enqueued.
-- Returns: {"status": pending | approved | failed, "message_id", "reason"}.
-- Writes:  submissions, events (submission_pending, submission_failed); as enqueue_posts.
declare
	v_answer jsonb := autopost.without_x_channel(p_submission);
	v_asks boolean := p_submission.moderated and p_submission.decision is null;
begin
	if v_answer is not null then
		perform autopost.fail_submission(p_submission, v_answer);
		return jsonb_build_object('status', 'failed', 'reason', v_answer -> 'code');
	elsif autopost.unfetched_media(p_submission.raw_payload) then
		perform pg_notify('autopost_wake', 'submissions');
	elsif v_asks then
		perform autopost.await_decision(p_submission.workspace_id, p_submission.submission_id, p_submission.raw_payload);
	else
		v_answer := autopost.enqueue_submission(p_submission);
		if v_answer ->> 'status' = 'failed' then
			return '{"status": "failed"}';
		end if;
	end if;
	return jsonb_build_object('status', case when v_asks then 'pending' else 'approved' end, 'message_id',
		v_answer -> 'message_id');
end
$$;

create or replace function autopost.take_event(p_endpoint autopost.workspace_endpoints, p_event jsonb, p_facts jsonb,
	p_run_id uuid) returns jsonb
language plpgsql
as $$
-- Purpose: makes the submission of a valid event, and its post if nothing holds it.
-- Returns: {"status": pending | approved | skipped | failed, "submission_id", "message_id", "reason"}.
-- Writes:  submissions, event_hashes, events (submission_skipped, submission_pending,
--          submission_failed); as ensure_x_config and enqueue_posts.
declare
	v_id uuid := autopost.new_id();
	v_workspace_id text := p_endpoint.workspace_id;
	v_first uuid;
	v_reason text := case when p_facts -> 'enabled' = 'false' then 'disabled' end;
	v_fetch boolean := autopost.unfetched_media(p_facts -> 'raw');
	v_submission autopost.submissions;
begin
	if v_reason is null then
		v_first := autopost.take_event_hash(v_workspace_id, p_facts ->> 'type', p_facts ->> 'hash', v_id);
		v_reason := case when v_first is not null then 'duplicate'
			when p_facts ->> 'type' in ('image', 'video', 'combat')
				and autopost.x_config(v_workspace_id) ->> 'mode' = 'shadow'
			then 'shadow_mode' end;
	end if;
	insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, source_ref,
		run_id, trace_id, next_attempt_at, created_at, updated_at, moderated, last_error, event, event_type,
			event_facts,
		hash, duplicate_of)
	values (v_workspace_id, v_id, p_endpoint.endpoint_id, 'event', case when v_reason is not null then 'skipped'
			when v_fetch then 'fetching' else 'new' end, p_facts -> 'raw', p_event ->> 'source_ref', p_run_id,
		autopost.new_id(), autopost.now_ts(), autopost.now_ts(), autopost.now_ts(), (p_facts -> 'moderated')::boolean,
		case when v_reason is not null then jsonb_build_object('category', 'PERMANENT', 'code', v_reason) end, p_event,
		p_facts ->> 'type', p_facts - 'raw', p_facts ->> 'hash', v_first)
	returning * into v_submission;
	if v_reason is not null then
		v_submission.plan := case when v_reason = 'shadow_mode' and not v_fetch
			then autopost.submission_plan(v_submission) end;
		update autopost.submissions s set plan = v_submission.plan
		where s.workspace_id = v_workspace_id and s.submission_id = v_id and v_submission.plan is not null;
		perform autopost.note_submission(v_submission, 'submission_skipped', jsonb_strip_nulls(jsonb_build_object(
			'reason', v_reason, 'duplicate_of', v_first)));
		return jsonb_build_object('status', 'skipped', 'reason', v_reason, 'submission_id', coalesce(v_first, v_id));
	end if;
	return autopost.start_event(v_submission) || jsonb_build_object('submission_id', v_id);
end
$$;

create or replace function autopost.event_again(p_submission autopost.submissions) returns jsonb
language plpgsql
as $$
-- Purpose: evaluates the event of a locked submission again, for a retry by a person: its text by the
--          newest template, and whether it needs a decision. One that was decided stays as it is.
-- Returns: null, or why it may not be retried: {"reason": "duplicate", "submission_id"} or {"reason":
--          "invalid", "errors"}.
-- Locks:   event_hashes.
-- Writes:  submissions, event_hashes.
declare
	v_facts jsonb := autopost.event_facts(p_submission.workspace_id, p_submission.event);
	v_first uuid;
begin
	if v_facts ? 'errors' then
		return jsonb_build_object('reason', 'invalid', 'errors', v_facts -> 'errors');
	end if;
	v_first := autopost.take_event_hash(p_submission.workspace_id, p_submission.event_type, p_submission.hash,
		p_submission.submission_id);
	if v_first is not null then
		return jsonb_build_object('reason', 'duplicate', 'submission_id', v_first);
	end if;
	update autopost.submissions s
	set raw_payload = v_facts -> 'raw', event_facts = v_facts - 'raw', moderated = (v_facts -> 'moderated')::boolean,
		plan = null, duplicate_of = null
	where s.workspace_id = p_submission.workspace_id and s.submission_id = p_submission.submission_id
		and s.decision is null;
	return null;
end
$$;
