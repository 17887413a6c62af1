create or replace function autopost.video_fields() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the fields of a variant for a video.
select '{title,description,tags,privacy,category_id,language,license,embeddable,made_for_kids,synthetic_media,notify_subscribers,playlist_id,publish_at,thumbnail,captions}'::text[]
$$;

create or replace function autopost.is_language(p_text text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true for a language tag.
select coalesce(p_text ~ '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$', false)
$$;

create or replace function autopost.names_medium(p_place jsonb, p_media jsonb, p_type text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a value is the index of a medium of this type.
select coalesce(jsonb_typeof(p_place) = 'number' and p_place::text ~ '^\d{1,2}$'
	and p_media -> (p_place::text)::int ->> 'type' = p_type, false)
$$;

create or replace function autopost.captions_errors(p_captions jsonb, p_at text, p_media jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors in the captions of a variant: [{"media": 1, "language": "en", "name":
--          "English"}].
begin
	if p_captions is null then
		return '[]';
	elsif jsonb_typeof(p_captions) <> 'array' or jsonb_array_length(p_captions) > 10 then
		return autopost.field_error(p_at, 'must be an array of at most 10', 'write [{"media": 1, "language": "en"}]');
	end if;
	return (
		select coalesce(jsonb_agg(x.error -> 0 order by x.n), '[]')
		from (
			select e.ordinality as n, case
				when jsonb_typeof(e.value) <> 'object' or not autopost.names_medium(e.value -> 'media', p_media, 'file')
					then autopost.field_error(format('%s[%s].media', p_at, e.ordinality - 1),
						'must be the index of a file in the post''s media',
						'give the place of the file with the captions, beginning with 0')
				when e.value ? 'language' and not autopost.is_language(e.value ->> 'language')
					then autopost.field_error(format('%s[%s].language', p_at, e.ordinality - 1),
						'must be a language tag',
						'write "en" or "pt-BR"')
				when e.value ? 'name' and (jsonb_typeof(e.value -> 'name') <> 'string'
					or length(e.value ->> 'name') > 150)
					then autopost.field_error(format('%s[%s].name', p_at, e.ordinality - 1),
						'must be a text of at most 150 characters', 'shorten it') end as error
			from jsonb_array_elements(p_captions) with ordinality e) x
		where x.error is not null);
end
$$;

create or replace function autopost.video_variant_errors(p_variant jsonb, p_at text, p_media jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors in the form of a variant for a video, as {field, reason, remedy}. The
--          platform's limits are checked later.
begin
	return (
		select coalesce(jsonb_agg(autopost.field_error(p_at || '.' || x.field, x.reason, x.remedy) -> 0
			order by x.field), '[]')
		from (
			select f.key as field, 'has a wrong type' as reason, 'it is a JSON ' || w.kind as remedy
			from jsonb_each(p_variant) f
			join (values ('title', 'string'), ('description', 'string'), ('privacy', 'string'),
				('category_id', 'string'), ('publish_at', 'string'),
				('language', 'string'), ('license', 'string'), ('playlist_id', 'string'), ('embeddable', 'boolean'),
					('made_for_kids', 'boolean'),
				('synthetic_media', 'boolean'), ('notify_subscribers', 'boolean')) w (key, kind) on w.key = f.key
			where jsonb_typeof(f.value) <> w.kind
			union all
			select 'privacy', 'is unknown', 'use public, unlisted or private'
			where jsonb_typeof(p_variant -> 'privacy') = 'string'
				and p_variant ->> 'privacy' not in ('public', 'unlisted', 'private')
			union all
			select 'category_id', 'must be the number of a category', 'write "22"'
			where jsonb_typeof(p_variant -> 'category_id') = 'string' and p_variant ->> 'category_id' !~ '^\d{1,3}$'
			union all
			select 'language', 'must be a language tag', 'write "en" or "pt-BR"'
			where jsonb_typeof(p_variant -> 'language') = 'string'
				and not autopost.is_language(p_variant ->> 'language')
			union all
			select 'license', 'is unknown', 'use youtube or creativeCommon'
			where jsonb_typeof(p_variant -> 'license') = 'string'
				and p_variant ->> 'license' not in ('youtube', 'creativeCommon')
			union all
			select 'playlist_id', 'must be the id of a playlist',
				'write what follows list= in its address, or "" for none'
			where jsonb_typeof(p_variant -> 'playlist_id') = 'string'
				and p_variant ->> 'playlist_id' !~ '^([A-Za-z0-9_-]{2,64})?$'
			union all
			select 'publish_at', 'must be a time with an offset', 'write 2026-12-01T10:00:00+03:00'
			where jsonb_typeof(p_variant -> 'publish_at') = 'string'
			and (p_variant ->> 'publish_at' !~ '^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$'
				or autopost.timestamp_of(p_variant ->> 'publish_at') is null)
			union all
			select 'thumbnail', 'must be the index of an image in the post''s media',
				'give the place of the image, beginning with 0'
			where p_variant ? 'thumbnail' and not autopost.names_medium(p_variant -> 'thumbnail', p_media, 'image')) x)
		|| (select coalesce(jsonb_agg(e.value || jsonb_build_object('field', p_at || '.tags')), '[]')
			from jsonb_array_elements(autopost.strings_error(p_variant, 'tags', 100)) e)
		|| autopost.captions_errors(p_variant -> 'captions', p_at || '.captions', p_media);
end
$$;

create or replace function autopost.normalize_video_variant(p_variant jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the normal form of a variant's video fields. Its description is the variant's text.
select jsonb_strip_nulls(jsonb_build_object(
	'text', autopost.normalize_text(p_variant ->> 'description', 'None'),
	'title', autopost.normalize_text(p_variant ->> 'title', 'None'),
	'tags', (select jsonb_agg(autopost.normalize_text(t.value, 'None') order by t.ordinality)
		from jsonb_array_elements_text(p_variant -> 'tags') with ordinality t),
	'privacy', p_variant -> 'privacy',
	'category_id', p_variant -> 'category_id',
	'language', p_variant -> 'language',
	'license', p_variant -> 'license',
	'embeddable', p_variant -> 'embeddable',
	'made_for_kids', p_variant -> 'made_for_kids',
	'synthetic_media', p_variant -> 'synthetic_media',
	'notify_subscribers', p_variant -> 'notify_subscribers',
	'playlist_id', p_variant -> 'playlist_id',
	'publish_at', p_variant -> 'publish_at',
	'thumbnail', p_variant -> 'thumbnail',
	'captions', p_variant -> 'captions'))
$$;
