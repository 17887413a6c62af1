create or replace function autopost.field_error(p_field text, p_reason text, p_remedy text, p_code text default null)
	returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: one error as {field, reason, remedy}, with the code of its rule if it has one.
begin
	return jsonb_build_array(jsonb_build_object('field', p_field, 'reason', p_reason, 'remedy', p_remedy)
		|| case when p_code is null then '{}' else jsonb_build_object('code', p_code) end);
end
$$;

create or replace function autopost.timestamp_of(p_text text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: an instant with offset (RFC 3339), else null.
begin
	if p_text !~ '^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:?\d{2})$' then
		return null;
	end if;
	return p_text::timestamptz;
exception when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
	return null;
end
$$;

create or replace function autopost.strings_error(p_payload jsonb, p_field text, p_max int) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the error of a field that must be an array of at most p_max non-empty strings, or an
--          empty array.
begin
	return (
		select case
			when not p_payload ? p_field then '[]'::jsonb
			when jsonb_typeof(p_payload -> p_field) <> 'array'
				then autopost.field_error(p_field, 'must be an array of strings', 'write ["…"]', 'wrong_type')
			when jsonb_array_length(p_payload -> p_field) > p_max
				then autopost.field_error(p_field, format('has more than %s entries', p_max), 'send fewer', 'too_many')
			when exists (select 1 from jsonb_array_elements(p_payload -> p_field) e
				where jsonb_typeof(e.value) <> 'string' or btrim(e.value #>> '{}') = ''
					or length(e.value #>> '{}') > 2048)
				then autopost.field_error(p_field, 'must contain only strings of 1 to 2048 characters',
					'remove or correct it', 'wrong_type')
			else '[]' end);
end
$$;

create or replace function autopost.medium_meta_errors(p_meta jsonb, p_at text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the errors of the meta of a medium at p_at: {filename, width, height, duration}.
select case
	when jsonb_typeof(p_meta) <> 'object'
		then autopost.field_error(p_at, 'must be an object', 'write {"filename": "price.pdf"}', 'wrong_type')
	else (
		select coalesce(jsonb_agg(autopost.field_error(p_at || '.' || r.key, r.rule, r.remedy) -> 0 order by r.key),
			'[]')
		from (values
			('filename', 'must be a name of 1 to 255 characters without slashes', 'write "price.pdf"',
				jsonb_typeof(p_meta -> 'filename') = 'string' and p_meta ->> 'filename' ~ '^[^/\\[:cntrl:]]{1,255}$'
					and p_meta ->> 'filename' not in ('.', '..')),
			('width', 'must be a whole number of pixels from 1 to 65535', 'correct it, or leave it out',
				p_meta @? '$.width ? (@ >= 1 && @ <= 65535 && @.floor() == @)'),
			('height', 'must be a whole number of pixels from 1 to 65535', 'correct it, or leave it out',
				p_meta @? '$.height ? (@ >= 1 && @ <= 65535 && @.floor() == @)'),
			('duration', 'must be a number of seconds from 0 to 1000000', 'correct it, or leave it out',
				p_meta @? '$.duration ? (@ >= 0 && @ <= 1000000)')) r (key, rule, remedy, ok)
		where p_meta ? r.key and not r.ok) end
$$;

create or replace function autopost.media_errors(p_media jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of the media of a raw payload: [{field, reason, remedy}].
declare
	v_errors jsonb := '[]';
	v_item record;
	v_at text;
begin
	if p_media is null then
		return v_errors;
	elsif jsonb_typeof(p_media) <> 'array' then
		return autopost.field_error('media', 'must be an array', 'write [{"type": "image", "url": "https://…"}]',
			'wrong_type');
	elsif jsonb_array_length(p_media) > 50 then
		return autopost.field_error('media', 'has more than 50 items', 'split the post', 'too_many');
	end if;
	for v_item in select e.value, e.ordinality - 1 as n from jsonb_array_elements(p_media) with ordinality e loop
		v_at := format('media[%s]', v_item.n);
		if jsonb_typeof(v_item.value) <> 'object' then
			v_errors := v_errors || autopost.field_error(v_at, 'must be an object',
				'write {"type": "image", "url": "https://…"}', 'wrong_type');
			continue;
		end if;
		if coalesce(v_item.value ->> 'type', '') not in ('image', 'video', 'audio', 'file', 'animation') then
			v_errors := v_errors || autopost.field_error(v_at || '.type', 'is unknown or missing',
				'use image, video, audio, file or animation', 'unknown_value');
		end if;
		if num_nonnulls(v_item.value ->> 'url', v_item.value ->> 'blob_ref', v_item.value ->> 'file_id',
			v_item.value ->> 'attachment_token') = 0 then
			v_errors := v_errors || autopost.field_error(v_at, 'has no content',
				'give url, blob_ref, file_id or attachment_token', 'missing');
		end if;
		if v_item.value ? 'url' and autopost.canonical_url(v_item.value ->> 'url') is null then
			v_errors := v_errors || autopost.field_error(v_at || '.url', 'must be an http or https URL',
				'give an absolute URL without spaces', 'not_url');
		end if;
		if v_item.value ? 'blob_ref' and v_item.value ->> 'blob_ref' !~ '^sha256:[0-9a-f]{64}$' then
			v_errors := v_errors || autopost.field_error(v_at || '.blob_ref', 'must be a media reference',
				'use "sha256:" and 64 hexadecimal digits');
		end if;
		if exists (select 1 from jsonb_each(v_item.value) f
			where f.key in ('caption', 'alt', 'file_id', 'attachment_token', 'auth_ref')
			and (jsonb_typeof(f.value) <> 'string' or f.key not in ('caption', 'alt') and f.value = '""')) then
			v_errors := v_errors || autopost.field_error(v_at,
				'caption, alt, file_id, attachment_token and auth_ref must be strings, and ids must not be empty',
				'correct the type');
		end if;
		if v_item.value ? 'auth_ref' and not v_item.value ?| '{file_id,attachment_token}' then
			v_errors := v_errors || autopost.field_error(v_at || '.auth_ref',
				'must stand beside file_id or attachment_token', 'leave it out', 'conflicting');
		end if;
		v_errors := v_errors || coalesce(autopost.medium_meta_errors(v_item.value -> 'meta', v_at || '.meta'), '[]');
	end loop;
	return v_errors;
end
$$;

create or replace function autopost.buttons_errors(p_buttons jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of the buttons of a raw payload, rows of {text, url}.
begin
	if p_buttons is null then
		return '[]';
	elsif jsonb_typeof(p_buttons) <> 'array' or exists (select 1 from jsonb_array_elements(p_buttons) r
		where jsonb_typeof(r.value) <> 'array') then
		return autopost.field_error('buttons', 'must be an array of rows',
			'write [[{"text": "Open", "url": "https://…"}]]', 'wrong_type');
	elsif exists (
		select 1 from jsonb_array_elements(p_buttons) r, jsonb_array_elements(r.value) b
		where jsonb_typeof(b.value) <> 'object' or coalesce(btrim(b.value ->> 'text'), '') = ''
			or length(b.value ->> 'text') > 128
		or autopost.canonical_url(b.value ->> 'url') is null or length(b.value ->> 'url') > 2048
	) then
		return autopost.field_error('buttons',
			'every button needs a text of 1 to 128 characters and an http or https URL', 'correct the button',
				'bad_button');
	end if;
	return '[]';
end
$$;

create or replace function autopost.variants_errors(p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of the variants of a raw payload whose media and buttons are valid.
declare
	v_errors jsonb := '[]';
	v_variant record;
	v_at text;
	v_media jsonb;
begin
	for v_variant in select v.key, v.value from jsonb_each(p_raw -> 'variants') v order by v.key loop
		v_at := 'variants.' || v_variant.key;
		if jsonb_typeof(v_variant.value) <> 'object' then
			v_errors := v_errors || autopost.field_error(v_at, 'must be an object', 'write {"text": "…"}',
				'wrong_type');
			continue;
		elsif not v_variant.value ?| (array['text', 'parse_mode', 'link', 'media', 'buttons',
			'disable_preview'] || autopost.thread_fields() || autopost.post_fields() || autopost.video_fields()) then
			v_errors := v_errors || autopost.field_error(v_at, 'must have a field of a variant',
				'give text, parse_mode, link, media, buttons, disable_preview, thread or first_comment; on x '
					|| array_to_string(autopost.post_fields(), ', ')
				|| '; of a video ' || array_to_string(autopost.video_fields(), ', '));
		end if;
		if exists (select 1 from jsonb_each(v_variant.value) f
			join (values ('text', 'string'), ('parse_mode', 'string'), ('link', 'string'), ('media', 'array'),
				('disable_preview', 'boolean')) w (key, kind) on w.key = f.key
			where jsonb_typeof(f.value) <> w.kind)
		then
			v_errors := v_errors || autopost.field_error(v_at, 'has a field of a wrong type',
				'text, parse_mode and link are strings, media is an array, disable_preview true or false',
					'wrong_type');
			continue;
		end if;
		if v_variant.value ->> 'parse_mode' not in ('HTML', 'Markdown', 'None') then
			v_errors := v_errors || autopost.field_error(v_at || '.parse_mode', 'is unknown',
				'use HTML, Markdown or None', 'unknown_value');
		end if;
		if btrim(v_variant.value ->> 'link') <> '' and autopost.canonical_url(v_variant.value ->> 'link') is null then
			v_errors := v_errors || autopost.field_error(v_at || '.link', 'must be an http or https URL',
				'give an absolute URL without spaces, or "" for none', 'not_url');
		end if;
		v_media := v_variant.value -> 'media';
		if exists (select 1 from jsonb_array_elements(v_media) m group by m.value having count(*) > 1
			or m.value not in (select to_jsonb(g) from generate_series(0,
				coalesce(jsonb_array_length(p_raw -> 'media'), 0) - 1) g))
		then
			v_errors := v_errors || autopost.field_error(v_at || '.media', 'must select media of the post',
				'give their places, each once, beginning with 0', 'unknown_value');
		end if;
		v_errors := v_errors || (select coalesce(jsonb_agg(e.value || jsonb_build_object('field', v_at || '.buttons')),
			'[]')
			from jsonb_array_elements(autopost.buttons_errors(v_variant.value -> 'buttons')) e)
			|| autopost.post_variant_errors(v_variant.value, v_at) || autopost.video_variant_errors(v_variant.value,
				v_at, p_raw -> 'media')
			|| autopost.thread_errors(v_variant.value, v_at || '.', autopost.parts_of(p_raw -> 'media', 'array'));
	end loop;
	return v_errors;
end
$$;

create or replace function autopost.template_form_errors(p_template jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors in the form of a post's {"name", "vars"}. template_errors checks that the
--          template exists.
begin
	if p_template is null then
		return '[]';
	elsif coalesce(jsonb_typeof(p_template -> 'name') <> 'string' or btrim(p_template ->> 'name') = '', true) then
		return autopost.field_error('template.name', 'is missing', 'write {"name": "…", "vars": {"…": "…"}}',
			'missing');
	elsif jsonb_typeof(coalesce(p_template -> 'vars', '{}')) <> 'object' then
		return autopost.field_error('template.vars', 'must be an object', 'write {"title": "…"}', 'wrong_type');
	end if;
	return (
		select coalesce(jsonb_agg(autopost.field_error('template.vars.' || e.key,
			'must be a text of at most 20000 characters', 'give a string or a number',
				'too_long') -> 0 order by e.key), '[]')
		from jsonb_each(coalesce(p_template -> 'vars', '{}')) e
		where jsonb_typeof(e.value) not in ('string', 'number', 'boolean', 'null') or length(e.value #>> '{}') > 20000);
end
$$;

create or replace function autopost.slot_errors(p_raw jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of the slot of a raw payload.
begin
	return case
		when not p_raw ? 'slot' then '[]'
		when p_raw ->> 'slot' <> 'next_free'
			then autopost.field_error('slot', format('must be next_free, got %s', p_raw ->> 'slot'), 'write "next_free"')
		when p_raw ? 'scheduled_for' then autopost.field_error('slot', 'must not stand beside scheduled_for',
			'give a time or a slot', 'conflicting')
		when p_raw ? 'remove_at' then autopost.field_error('slot',
			'must not stand beside remove_at, because it may be later',
			'give a time, or ask for the removal after the post was sent', 'conflicting')
		else '[]' end;
end
$$;

create or replace function autopost.payload_errors(p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors in the envelope of a raw post, [{field, reason, remedy}]; empty if valid.
--          Rules of a platform (lengths, markup) are not checked here: they fail single deliveries,
--          not the post.
declare
	v_errors jsonb := '[]';
	v_field record;
begin
	if jsonb_typeof(p_raw) is distinct from 'object' then
		return autopost.field_error('', 'a post must be a JSON object', 'send {"text": "…"}', 'wrong_type');
	end if;
	for v_field in
		select f.key, f.value, w.kind from jsonb_each(p_raw) f
		join (values ('source_ref', 'string'), ('text', 'string'), ('parse_mode', 'string'), ('link', 'string'),
			('scheduled_for', 'string'), ('remove_at', 'string'), ('occurrence', 'string'),
			('slot', 'string'),
			('disable_preview', 'boolean'), ('variants', 'object'), ('routing', 'object'),
				('template', 'object')) w (key, kind) on w.key = f.key
		where jsonb_typeof(f.value) <> w.kind
	loop
		v_errors := v_errors || autopost.field_error(v_field.key, format('must be a JSON %s', v_field.kind),
			'correct the type, or leave the field out', 'wrong_type');
	end loop;
	if v_errors <> '[]' then
		return v_errors;
	end if;
	v_errors := autopost.strings_error(p_raw, 'links', 50) || autopost.strings_error(p_raw, 'tags', 100)
		|| autopost.media_errors(p_raw -> 'media') || autopost.buttons_errors(p_raw -> 'buttons');
	if p_raw ? 'routing' then
		v_errors := v_errors || (select coalesce(jsonb_agg(
			e.value || jsonb_build_object('field', 'routing.' || (e.value ->> 'field'))), '[]')
			from jsonb_array_elements(autopost.strings_error(p_raw -> 'routing', 'include_channels', 10000)
				|| autopost.strings_error(p_raw -> 'routing', 'exclude_channels', 10000)) e);
	end if;
	if coalesce(btrim(p_raw ->> 'text'), '') = '' and coalesce(btrim(p_raw ->> 'link'), '') = ''
		and coalesce(p_raw -> 'media', '[]') = '[]' and not p_raw ? 'template' then
		v_errors := v_errors || autopost.field_error('text', 'the post is empty', 'give text, link or media',
			'empty_post');
	end if;
	if length(p_raw ->> 'text') > 100000 then
		v_errors := v_errors || autopost.field_error('text', 'is longer than 100000 characters', 'shorten it',
			'too_long');
	end if;
	if p_raw ? 'source_ref' and length(p_raw ->> 'source_ref') not between 1 and 512 then
		v_errors := v_errors || autopost.field_error('source_ref', 'must have 1 to 512 characters',
			'use the id of the post at its source', 'too_long');
	end if;
	if p_raw ? 'parse_mode' and p_raw ->> 'parse_mode' not in ('HTML', 'Markdown', 'None') then
		v_errors := v_errors || autopost.field_error('parse_mode', 'is unknown', 'use HTML, Markdown or None',
			'unknown_value');
	end if;
	if p_raw ? 'link' and btrim(p_raw ->> 'link') <> '' and autopost.canonical_url(p_raw ->> 'link') is null then
		v_errors := v_errors || autopost.field_error('link', 'must be an http or https URL',
			'give an absolute URL without spaces', 'not_url');
	end if;
	if p_raw ? 'scheduled_for' and autopost.timestamp_of(p_raw ->> 'scheduled_for') is null then
		v_errors := v_errors || autopost.field_error('scheduled_for', 'must be a time with an offset',
			'write 2026-12-01T10:00:00+03:00', 'not_time');
	elsif autopost.timestamp_of(p_raw ->> 'scheduled_for') > autopost.now_ts() + autopost.schedule_horizon() then
		v_errors := v_errors || autopost.field_error('scheduled_for', format('must be within %s',
			autopost.schedule_horizon()), 'choose an earlier time', 'too_late');
	end if;
	if p_raw ? 'occurrence' and autopost.timestamp_of(p_raw ->> 'occurrence') is null then
		v_errors := v_errors || autopost.field_error('occurrence', 'must be a time with an offset',
			'write 2026-12-01T10:00:00+03:00', 'not_time');
	end if;
	v_errors := v_errors || autopost.slot_errors(p_raw);
	if p_raw ? 'remove_at' and autopost.timestamp_of(p_raw ->> 'remove_at') is null then
		v_errors := v_errors || autopost.field_error('remove_at', 'must be a time with an offset',
			'write 2026-12-01T18:00:00+03:00', 'not_time');
	elsif autopost.timestamp_of(p_raw ->> 'remove_at') <= autopost.timestamp_of(p_raw ->> 'scheduled_for') then
		v_errors := v_errors || autopost.field_error('remove_at', 'is not after scheduled_for', 'choose a later time',
			'wrong_order');
	elsif autopost.timestamp_of(p_raw ->> 'remove_at') <= autopost.now_ts() then
		v_errors := v_errors || autopost.field_error('remove_at', 'must be in the future', 'choose a later time',
			'not_future');
	elsif autopost.timestamp_of(p_raw ->> 'remove_at') > autopost.now_ts()
		+ autopost.setting_interval('delivery_retention_days') then
		v_errors := v_errors || autopost.field_error('remove_at', 'is later than deliveries are kept',
			'choose an earlier time, or raise the setting delivery_retention_days', 'too_late');
	end if;
	if p_raw ?| autopost.thread_fields() then
		v_errors := v_errors || autopost.thread_errors(p_raw, '', autopost.parts_of(p_raw -> 'media', 'array'));
	end if;
	if v_errors = '[]' then
		v_errors := autopost.first_part_errors(p_raw);
	end if;
	return v_errors || autopost.variants_errors(p_raw) || autopost.template_form_errors(p_raw -> 'template');
end
$$;

create or replace function autopost.unknown_fields(p_raw jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the unknown fields of a raw payload. They are kept in messages.source.fields and not used.
begin
	return (
		select coalesce(jsonb_agg(f.key order by f.key), '[]')
		from jsonb_object_keys(p_raw) f (key)
		where f.key not in ('source_ref', 'text', 'parse_mode', 'link', 'links', 'media', 'tags', 'disable_preview',
			'buttons',
			'scheduled_for', 'slot', 'remove_at', 'variants', 'routing', 'template', 'occurrence', 'thread', 'first_comment'));
end
$$;

create or replace function autopost.parts_of(p_value jsonb, p_type text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the value if it has this type, else an empty one. payload_errors reports wrong types.
select case when jsonb_typeof(p_value) = p_type then p_value when p_type = 'array' then '[]'::jsonb else '{}' end
$$;

create or replace function autopost.variant_warnings(p_workspace_id text, p_variants jsonb) returns setof text
language plpgsql stable
as $$
-- Purpose: variants for unknown platforms and channels, and unknown fields of variants. One lookup
--          each, for any number of channels.
-- Reads:   platforms, channels.
begin
	return query
	select 'variants.' || v.key from jsonb_object_keys(p_variants) v (key)
	where not exists (select 1 from autopost.platforms p where p.platform = v.key)
	and (select c.channel_id from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = v.key) is null
	union all
	select 'variants.' || v.key || '.' || f.key
	from jsonb_each(p_variants) v, jsonb_object_keys(autopost.parts_of(v.value, 'object')) f (key)
	where f.key not in ('text', 'parse_mode', 'link', 'media', 'buttons', 'disable_preview', 'thread', 'first_comment')
	and not exists (
		select 1 from autopost.platforms p
		where f.key = any (p.post_fields || case p.takes when 'videos' then autopost.video_fields() end)
			and p.platform in (v.key, (
			select c.platform from autopost.channels c where c.workspace_id = p_workspace_id
				and c.channel_id = v.key)));
end
$$;

create or replace function autopost.routing_warnings(p_workspace_id text, p_routing jsonb) returns setof text
language plpgsql stable
as $$
-- Purpose: unknown fields of a post's routing, and unknown channels in it. One lookup each, for any
--          number of channels.
-- Reads:   channels.
begin
	return query
	select 'routing.' || f.key from jsonb_object_keys(p_routing) f (key)
		where f.key not in ('include_channels', 'exclude_channels')
	union
	select 'routing.' || f.key || '.' || n.id
	from jsonb_each(p_routing) f, jsonb_array_elements_text(autopost.parts_of(f.value, 'array')) n (id)
	where f.key in ('include_channels', 'exclude_channels')
	and (select c.channel_id from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = n.id) is null;
end
$$;

create or replace function autopost.part_warnings(p_raw jsonb) returns setof text
language sql immutable parallel safe
as $$
-- Purpose: unknown fields of a post's media, buttons, template and thread.
select format('media[%s].%s', m.ordinality - 1, f.key)
from jsonb_array_elements(autopost.parts_of(p_raw -> 'media', 'array')) with ordinality m,
	jsonb_object_keys(autopost.parts_of(m.value, 'object')) f (key)
where f.key not in ('type', 'url', 'blob_ref', 'file_id', 'attachment_token', 'auth_ref', 'caption', 'alt', 'meta')
union all
select format('media[%s].meta.%s', m.ordinality - 1, f.key)
from jsonb_array_elements(autopost.parts_of(p_raw -> 'media', 'array')) with ordinality m,
	jsonb_object_keys(autopost.parts_of(autopost.parts_of(m.value, 'object') -> 'meta', 'object')) f (key)
where f.key not in ('filename', 'width', 'height', 'duration')
union all
select format('buttons[%s][%s].%s', r.ordinality - 1, b.ordinality - 1, f.key)
from jsonb_array_elements(autopost.parts_of(p_raw -> 'buttons', 'array')) with ordinality r,
	jsonb_array_elements(autopost.parts_of(r.value, 'array')) with ordinality b,
	jsonb_object_keys(autopost.parts_of(b.value, 'object')) f (key)
where f.key not in ('text', 'url')
union all
select 'template.' || f.key from jsonb_object_keys(autopost.parts_of(p_raw -> 'template', 'object')) f (key)
	where f.key not in ('name', 'vars')
union all
select format('thread[%s].%s', t.ordinality - 1, f.key)
from jsonb_array_elements(autopost.parts_of(p_raw -> 'thread', 'array')) with ordinality t,
	jsonb_object_keys(autopost.parts_of(t.value, 'object')) f (key)
where f.key not in ('text', 'media')
$$;

create or replace function autopost.post_warnings(p_workspace_id text, p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the parts of a raw payload that have no effect: unknown fields, variants for unknown
--          platforms and channels, unknown channels in the routing, a scheduled_for more than a
--          minute ago.
-- Reads:   platforms, channels.
declare
	v_names text[] := '{}';
begin
	if jsonb_typeof(p_raw -> 'scheduled_for') = 'string'
		and autopost.timestamp_of(p_raw ->> 'scheduled_for') < autopost.now_ts() - interval '1 minute' then
		v_names := '{scheduled_for}';
	end if;
	if p_raw ? 'variants' then
		v_names := v_names || array(select autopost.variant_warnings(p_workspace_id,
			autopost.parts_of(p_raw -> 'variants', 'object')));
	end if;
	if p_raw ? 'routing' then
		v_names := v_names || array(select autopost.routing_warnings(p_workspace_id,
			autopost.parts_of(p_raw -> 'routing', 'object')));
	end if;
	if p_raw ?| '{media,buttons,template,thread}' then
		v_names := v_names || array(select autopost.part_warnings(p_raw));
	end if;
	return autopost.unknown_fields(p_raw) || (select coalesce(jsonb_agg(n.name order by n.name), '[]')
		from unnest(v_names) n (name));
end
$$;
