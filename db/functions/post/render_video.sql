create or replace function autopost.tags_length(p_tags jsonb) returns int
language sql immutable parallel safe
as $$
-- Purpose: the length of tags as YouTube counts it: with commas between them and quotes around
--          those with a space.
select coalesce(sum(char_length(t.value) + case when strpos(t.value, ' ') > 0
	then 2 else 0 end)::int + count(*)::int - 1, 0)
from jsonb_array_elements_text(p_tags) t
$$;

create or replace function autopost.with_post_tags(p_tags jsonb, p_post_tags jsonb, p_forbidden text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the tags of a video and after them those of its post, as many as fit, without forbidden
--          characters.
declare
	v_tags jsonb := coalesce(p_tags, '[]');
	v_tag text;
begin
	for v_tag in
		select t.value from jsonb_array_elements_text(coalesce(p_post_tags, '[]')) with ordinality t
		where t.value = translate(t.value, p_forbidden, '')
		order by t.ordinality
	loop
		if not exists (select 1 from jsonb_array_elements_text(v_tags) h where lower(h.value) = lower(v_tag))
			and autopost.tags_length(v_tags || to_jsonb(v_tag)) <= 500 then
			v_tags := v_tags || to_jsonb(v_tag);
		end if;
	end loop;
	return nullif(v_tags, '[]');
end
$$;

create or replace function autopost.video_media(p_payload jsonb, p_variant jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the roles of a post's media in a video. The first video counts; the first image is the
--          thumbnail unless the variant names another.
-- Returns: {"video", "more": further videos, "thumbnail", "captions": [{"media", "language",
--          "name"}], "dropped": number of unused media}.
declare
	v_media jsonb := coalesce(p_payload -> 'media', '[]');
	v_places int[] := case when p_variant ? 'media'
		then array(select jsonb_array_elements_text(p_variant -> 'media')::int)
		else array(select generate_series(0, jsonb_array_length(v_media) - 1)) end;
	v_videos int[] := array(select u.place from unnest(v_places) with ordinality u (place, n)
		where v_media -> u.place ->> 'type' = 'video' order by u.n);
	v_thumbnail int := coalesce((p_variant ->> 'thumbnail')::int,
		(select u.place from unnest(v_places) with ordinality u (place, n) where v_media -> u.place ->> 'type' = 'image'
			order by u.n limit 1));
	v_captions jsonb := coalesce(p_variant -> 'captions', '[]');
begin
	return jsonb_strip_nulls(jsonb_build_object('video', v_videos[1], 'more', v_videos[2], 'thumbnail', v_thumbnail,
		'captions', v_captions, 'dropped', (
		select nullif(count(*), 0) from unnest(v_places) u (place)
		where u.place <> all (v_videos) and u.place is distinct from v_thumbnail
		and not exists (select 1 from jsonb_array_elements(v_captions) c where (c.value ->> 'media')::int = u.place))));
end
$$;

create or replace function autopost.video_refusal(p_payload jsonb, p_platform autopost.platforms, p_choice jsonb,
	p_media jsonb, p_sizes jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: the first reason why the platform would refuse a video, as "field: reason; remedy", else
--          null.
begin
	return (
		select coalesce(
			case when not p_media ? 'video'
				then format('media: %s needs a video; give one, or leave the channel out',
				p_platform.platform) end,
			case when p_media ? 'more' then format('media[%s]: %s takes one video a post; choose it by variants.%s.media',
				p_media ->> 'more', p_platform.platform, p_platform.platform) end,
			(select min(format('media[%s]: %s bytes, %s takes at most %s; make it smaller', u.place, s.bytes,
				p_platform.platform, s.most))
			from (select (p_media ->> 'video')::int as place union all select (p_media ->> 'thumbnail')::int
				union all select (c.value ->> 'media')::int from jsonb_array_elements(p_media -> 'captions') c) u
			cross join lateral (select (p_sizes ->> (p_payload -> 'media' -> u.place ->> 'blob_ref'))::bigint as bytes,
				(p_platform.media_bytes ->> (p_payload -> 'media' -> u.place ->> 'type'))::bigint as most) s
			where s.bytes > s.most),
			(select min(format('media[%s]: ', u.place) || autopost.id_refusal(p_payload -> 'media' -> u.place, p_platform,
				p_choice ->> 'auth_ref'))
			from (select (p_media ->> 'video')::int as place union all select (p_media ->> 'thumbnail')::int
				union all select (c.value ->> 'media')::int from jsonb_array_elements(p_media -> 'captions') c) u),
			case when autopost.measure(x.variant ->> 'title', 'utf16') > p_platform.title_limit
				then format('title: %s characters, %s takes at most %s; shorten it',
					autopost.measure(x.variant ->> 'title', 'utf16'), p_platform.platform, p_platform.title_limit) end,
			case when x.variant ->> 'title' <> translate(x.variant ->> 'title', p_platform.forbidden, '')
				then format('title: %s takes none of %s in it; leave them out', p_platform.platform, p_platform.forbidden) end,
			case when autopost.tags_length(x.tags) > 500
				then format('tags: %s characters, %s takes at most 500; give fewer', autopost.tags_length(x.tags),
					p_platform.platform) end,
			(select format('tags: %s takes none of %s in them; leave them out', p_platform.platform, p_platform.forbidden)
			from jsonb_array_elements_text(x.tags) t
			where t.value <> translate(t.value, p_platform.forbidden, '') limit 1),
			case when x.variant ? 'publish_at' and x.variant ->> 'privacy' <> 'private'
				then format('privacy: a video with publish_at is private until then, not %s; leave it out',
					x.variant ->> 'privacy') end,
			(select format('captions[%s].language: is missing; give it, or set captions_language of the channel''s %s settings',
				c.ordinality - 1, p_platform.platform)
			from jsonb_array_elements(p_media -> 'captions') with ordinality c
			where not c.value ? 'language' and p_choice #> '{defaults,captions_language}' is null
			order by c.ordinality limit 1))
		from (select p_choice -> 'variant' as variant, coalesce(p_choice #> '{variant,tags}',
			p_choice #> '{defaults,tags}') as tags) x);
end
$$;

create or replace function autopost.video_later(p_payload jsonb, p_platform autopost.platforms, p_choice jsonb)
	returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the first comment of a video, whose platform has no threads. Only a video that others can see
--          has comments.
-- Returns: its step, null without one, or {"refusal"}.
declare
	v_later jsonb := autopost.later_content(p_payload, p_choice -> 'variant');
	v_remedy text := format('; set variants.%s.first_comment to null', p_platform.platform);
	v_name text := p_platform.platform;
	v_body jsonb;
begin
	if v_later ? 'thread' then
		return jsonb_build_object('refusal', format('thread: %s takes none; set variants.%s.thread to null', v_name,
			v_name));
	elsif not v_later ? 'comment' then
		return null;
	elsif p_platform.comment_limit is null then
		return jsonb_build_object('refusal', format('first_comment: %s takes none', v_name) || v_remedy);
	elsif p_choice -> 'variant' ? 'publish_at'
		or coalesce(p_choice #>> '{variant,privacy}', p_choice #>> '{defaults,privacy}') = 'private' then
		return jsonb_build_object('refusal', 'first_comment: a private video takes none' || v_remedy);
	elsif coalesce(p_choice #> '{variant,made_for_kids}', p_choice #> '{defaults,made_for_kids}') = 'true' then
		return jsonb_build_object('refusal', 'first_comment: a video made for kids takes none' || v_remedy);
	end if;
	p_platform.text_limit := p_platform.comment_limit;
	p_platform.length_unit := 'utf16';
	p_platform.forbidden := '';
	v_body := autopost.later_bodies(v_later, p_platform, p_choice);
	if jsonb_typeof(v_body) = 'object' then
		return v_body;
	end if;
	return jsonb_build_object('step', 'comment', 'comment', true, 'aside', true, 'text', true, 'body',
		v_body -> 0 -> 'text');
end
$$;

create or replace function autopost.video_steps(p_media jsonb, p_playlist text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the steps that make a video: upload session, upload, additions. Only the upload has a
--          visible effect.
select '[{"step": "session", "aside": true}]'::jsonb || jsonb_build_object('step', 'video', 'text', true,
	'items', jsonb_build_array(p_media -> 'video'))
	|| case when p_media ? 'thumbnail' then jsonb_build_array(
		jsonb_build_object('step', 'thumbnail', 'aside', true, 'items', jsonb_build_array(p_media -> 'thumbnail')))
		else '[]' end
	|| coalesce((select jsonb_agg(jsonb_build_object('step', autopost.captions_step(c.ordinality), 'aside', true,
		'items', jsonb_build_array(c.value -> 'media')) order by c.ordinality)
		from jsonb_array_elements(p_media -> 'captions') with ordinality c), '[]')
	|| case when p_playlist <> '' then '[{"step": "playlist", "aside": true}]'::jsonb else '[]' end
$$;

create or replace function autopost.captions_step(p_n bigint) returns text
language sql immutable parallel safe
as $$
-- Purpose: the name of a step that adds captions.
select case p_n when 1 then 'captions' else 'captions-' || p_n end
$$;

create or replace function autopost.render_video(p_payload jsonb, p_platform autopost.platforms, p_choice jsonb,
	p_sizes jsonb, p_body jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: preflight and rendering of a post as a video. render has rendered the body. The variant
--          wins over the channel's settings. The title is the variant's, else the template's, else
--          the cut first line.
-- Returns: as render.
declare
	v_variant jsonb := coalesce(p_choice -> 'variant', '{}');
	v_defaults jsonb := coalesce(p_choice -> 'defaults', '{}');
	v_media jsonb := autopost.video_media(p_payload, v_variant);
	v_title text := coalesce(v_variant ->> 'title', p_payload #>> '{template,vars,title}',
		substring(btrim(p_body ->> 'text', E' \n') from '^[^\n]+'));
	v_comment jsonb := autopost.video_later(p_payload, p_platform, p_choice);
	v_refusal text := coalesce(autopost.video_refusal(p_payload, p_platform, p_choice, v_media, p_sizes),
		v_comment ->> 'refusal');
	v_playlist text := coalesce(v_variant ->> 'playlist_id', v_defaults ->> 'playlist_id');
	v_tags jsonb := coalesce(v_variant -> 'tags', v_defaults -> 'tags');
	v_notes jsonb := '[]';
begin
	if v_defaults -> 'post_tags' = 'true' then
		v_tags := autopost.with_post_tags(v_tags, p_payload -> 'tags', p_platform.forbidden);
	end if;
	v_title := btrim(autopost.shorten_text(btrim(regexp_replace(translate(v_title, p_platform.forbidden, ''), '\s+',
		' ', 'g')), false, p_platform.title_limit, 'utf16'));
	if v_refusal is null and (p_body ->> 'length')::int > p_platform.text_limit then
		v_refusal := format('text has %s %s, %s takes at most %s', p_body ->> 'length', p_body ->> 'unit',
			p_platform.platform, p_platform.text_limit);
	elsif v_refusal is null and coalesce(v_title, '') = '' then
		v_refusal := format('%s needs a title: give text, variants.%s.title or template.vars.title',
			p_platform.platform, p_platform.platform);
	end if;
	if v_refusal is not null then
		return autopost.render_refused(v_refusal);
	end if;
	if v_media ? 'dropped' then
		v_notes := v_notes || jsonb_build_array(format('media dropped: %s shows a video, its thumbnail and captions',
			p_platform.platform));
	end if;
	if jsonb_array_length(coalesce(v_variant -> 'buttons', p_payload -> 'buttons')) > 0 then
		v_notes := v_notes || jsonb_build_array(format('buttons dropped: %s has none', p_platform.platform));
	end if;
	return jsonb_strip_nulls(jsonb_build_object('verdict', 'queued', 'text', p_body -> 'text',
		'template_version', p_choice -> 'template_version', 'meta', jsonb_build_object(
		'length', p_body -> 'length',
		'length_limit', p_platform.text_limit,
		'truncated', p_body -> 'truncated',
		'title', v_title,
		'video', jsonb_build_object(
			'privacy', case when v_variant ? 'publish_at'
				then 'private' else coalesce(v_variant ->> 'privacy', v_defaults ->> 'privacy', 'public') end,
			'publish_at', v_variant -> 'publish_at',
			'tags', v_tags,
			'category_id', coalesce(v_variant -> 'category_id', v_defaults -> 'category_id'),
			'language', coalesce(v_variant -> 'language', v_defaults -> 'language'),
			'license', coalesce(v_variant -> 'license', v_defaults -> 'license'),
			'embeddable', coalesce(v_variant -> 'embeddable', v_defaults -> 'embeddable'),
			'notify_subscribers', coalesce(v_variant -> 'notify_subscribers', v_defaults -> 'notify_subscribers'),
			'playlist_id', nullif(v_playlist, ''),
			'made_for_kids', coalesce(v_variant -> 'made_for_kids', v_defaults -> 'made_for_kids'),
			'synthetic_media', coalesce(v_variant -> 'synthetic_media', v_defaults -> 'synthetic_media'),
			'captions', (select jsonb_object_agg(autopost.captions_step(c.ordinality), jsonb_build_object(
					'language', coalesce(c.value -> 'language', v_defaults -> 'captions_language'),
						'name', c.value -> 'name'))
				from jsonb_array_elements(v_media -> 'captions') with ordinality c)),
		'notes', nullif(v_notes, '[]'),
		'steps', autopost.video_steps(v_media, v_playlist) || coalesce(v_comment, '[]'))));
end
$$;
