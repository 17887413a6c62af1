create or replace function autopost.normalize_media(p_media jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the media in order, each with its fingerprint: the hash of the content, else the
--          platform's id, else the canonical URL. The URL of a medium with content or id is dropped:
--          it may be signed.
begin
	return (
		select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
				'type', e.value ->> 'type',
				'blob_ref', e.value ->> 'blob_ref',
				'file_id', e.value ->> 'file_id',
				'attachment_token', e.value ->> 'attachment_token',
				'auth_ref', e.value ->> 'auth_ref',
				'url', case when not e.value ?| '{blob_ref,file_id,attachment_token}'
					then autopost.canonical_url(e.value ->> 'url') end,
				'caption', nullif(autopost.normalize_text(e.value ->> 'caption', 'None'), ''),
				'alt', nullif(autopost.normalize_text(e.value ->> 'alt', 'None'), ''),
				'meta', (select jsonb_object_agg(f.key, f.value) from jsonb_each(e.value -> 'meta') f
					where f.key in ('filename', 'width', 'height', 'duration')),
				'fingerprint', coalesce(e.value ->> 'blob_ref', 'id:' || (e.value ->> 'file_id'),
					'id:' || (e.value ->> 'attachment_token'), 'url:' || autopost.canonical_url(e.value ->> 'url'))
			)) order by e.ordinality), '[]')
		from jsonb_array_elements(coalesce(p_media, '[]')) with ordinality e);
end
$$;

create or replace function autopost.normalize_buttons(p_buttons jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rows of buttons without empty ones.
select coalesce(jsonb_agg((
		select jsonb_agg(jsonb_build_object('text', autopost.normalize_text(b.value ->> 'text', 'None'),
			'url', autopost.canonical_url(b.value ->> 'url')) order by b.ordinality)
		from jsonb_array_elements(r.value) with ordinality b) order by r.ordinality) filter (where r.value <> '[]'),
			'[]')
from jsonb_array_elements(coalesce(p_buttons, '[]')) with ordinality r
$$;

create or replace function autopost.normalize_variant(p_variant jsonb, p_parse_mode text, p_links text[]) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields in which a variant differs from its post, whose parse_mode and canonical links are
--          given. An empty text, link, media, buttons, thread or first_comment removes the post's.
select jsonb_strip_nulls(jsonb_build_object(
	'text', autopost.with_canonical_links(
		autopost.normalize_text(p_variant ->> 'text', coalesce(p_variant ->> 'parse_mode', p_parse_mode)),
		p_links || autopost.canonical_url(p_variant ->> 'link')),
	'parse_mode', p_variant ->> 'parse_mode',
	'link', coalesce(autopost.canonical_url(p_variant ->> 'link'), btrim(p_variant ->> 'link')),
	'media', p_variant -> 'media',
	'buttons', case when p_variant ? 'buttons' then autopost.normalize_buttons(p_variant -> 'buttons') end,
	'disable_preview', p_variant -> 'disable_preview',
	'thread', case when p_variant ? 'thread'
		then autopost.normalize_thread(p_variant -> 'thread', coalesce(p_variant ->> 'parse_mode', p_parse_mode)) end,
	'first_comment', case when p_variant ? 'first_comment'
		then coalesce(autopost.normalize_text(p_variant ->> 'first_comment',
			coalesce(p_variant ->> 'parse_mode', p_parse_mode)), '') end))
		|| coalesce(autopost.post_variant(p_variant, autopost.post_fields()),
		'{}') || autopost.normalize_video_variant(p_variant)
$$;

create or replace function autopost.normalize_template(p_template jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the template reference of a post with its values as normalized text, without blank ones.
select jsonb_build_object('name', p_template ->> 'name', 'vars', coalesce((
	select jsonb_object_agg(v.key, v.value) from (
		select e.key, autopost.normalize_text(e.value, 'None') as value
			from jsonb_each_text(coalesce(p_template -> 'vars', '{}')) e) v
	where v.value <> ''), '{}'))
$$;

create or replace function autopost.normalize_payload(p_raw jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the normal form of a raw payload, equal for every way of ingest. messages.payload stores
--          it and content_hash covers it. The payload passed payload_errors.
declare
	v_link text := autopost.canonical_url(nullif(btrim(p_raw ->> 'link'), ''));
	v_links text[] := array(select coalesce(autopost.canonical_url(l.value), btrim(l.value))
		from jsonb_array_elements_text(coalesce(p_raw -> 'links', '[]')) with ordinality l order by l.ordinality);
	v_all text[] := array_remove(v_link || v_links, null);
begin
	return (
		select jsonb_strip_nulls(jsonb_build_object(
			'type', case when coalesce(p_raw -> 'media', '[]') = '[]' then 'text' else 'media' end,
			'text', nullif(autopost.with_canonical_links(
				autopost.normalize_text(p_raw ->> 'text', p_raw ->> 'parse_mode'), v_all), ''),
			'parse_mode', p_raw ->> 'parse_mode',
			'link', v_link,
			'links', nullif(to_jsonb(v_links), '[]'),
			'media', nullif(autopost.normalize_media(p_raw -> 'media'), '[]'),
			'buttons', case when p_raw ? 'buttons' then nullif(autopost.normalize_buttons(p_raw -> 'buttons'), '[]') end,
			'template', case when p_raw ? 'template' then autopost.normalize_template(p_raw -> 'template') end,
			'variants', nullif((select coalesce(jsonb_object_agg(v.key,
				autopost.normalize_variant(v.value, p_raw ->> 'parse_mode', v_all)), '{}')
				from jsonb_each(coalesce(p_raw -> 'variants', '{}')) v), '{}'),
			'occurrence', autopost.utc(autopost.timestamp_of(p_raw ->> 'occurrence')),
			'thread', nullif(autopost.normalize_thread(p_raw -> 'thread', p_raw ->> 'parse_mode'), '[]'),
			'first_comment', nullif(autopost.normalize_text(p_raw ->> 'first_comment', p_raw ->> 'parse_mode'), ''),
			'disable_preview', nullif(p_raw -> 'disable_preview', 'false'))));
end
$$;

create or replace function autopost.hash_version() returns int
language sql immutable parallel safe
as $$
-- Purpose: the version of content_hash. It grows with every change of normalize_payload or
--          content_hash that affects existing payloads.
select 1
$$;

create or replace function autopost.content_hash(p_payload jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: SHA-256, in hexadecimal, of the content of a post: its normal form without the preview
--          setting; of each medium kind, fingerprint, caption and alt, in order. The text of jsonb
--          is the canonical form: sorted keys, fixed spacing.
begin
	return (
		select encode(sha256(convert_to((
			(p_payload - 'disable_preview' - 'media')
			|| jsonb_build_object('media', (select coalesce(jsonb_agg(
				m.value - '{url,blob_ref,file_id,attachment_token,auth_ref,meta}'::text[] order by m.ordinality), '[]')
				from jsonb_array_elements(coalesce(p_payload -> 'media', '[]')) with ordinality m))
			)::text, 'UTF8')), 'hex'));
end
$$;

create or replace function autopost.tags_of(p_raw jsonb, p_payload jsonb) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: the tags of a payload and the hashtags of its text and thread: folded, sorted, without
--          duplicates.
begin
	return (
		select coalesce(array_agg(distinct t.tag order by t.tag), '{}')
		from (
			select btrim(autopost.fold(normalize(e.value, NFC)), ' #') as tag
				from jsonb_array_elements_text(coalesce(p_raw -> 'tags', '[]')) e
			union all
			select autopost.fold(m[1]) from regexp_matches(concat_ws(E'\n', p_payload ->> 'text',
				(select string_agg(e.value ->> 'text', E'\n' order by e.ordinality)
				from jsonb_array_elements(p_payload -> 'thread') with ordinality e)) collate "und-x-icu",
				'(?:^|[^\w&/#])#(\w{1,64})', 'g') m
			where m[1] ~ '[^\d_]'
		) t
		where t.tag <> '');
end
$$;
