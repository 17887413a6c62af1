create or replace function autopost.render_text(p_text text, p_links text[], p_parse_mode text,
	p_dialect text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: a text in a platform's dialect, with the links (of links_to_add) as its last paragraph, one
--          line each. Without parse_mode the text is plain and stays.
-- Returns: {"text", "plain"} or {"error"}.
declare
	v_html text;
	v_text text := coalesce(p_text, '');
	v_link text := coalesce(array_to_string(p_links, E'\n'), '');
	v_gap text := case when v_text <> '' and v_link <> '' then E'\n\n' else '' end;
	v_out jsonb;
begin
	if p_parse_mode is null or p_parse_mode = 'None' then
		return jsonb_build_object('text', v_text || v_gap || v_link, 'plain', v_text || v_gap || v_link);
	end if;
	v_html := case p_parse_mode when 'Markdown' then autopost.markdown_to_html(v_text) else v_text end;
	v_out := autopost.html_in_dialect(v_html || v_gap || autopost.html_escape(v_link), case p_dialect when 'plain'
		then 'max_html' else p_dialect end);
	if p_dialect = 'plain' and not v_out ? 'error' then
		return jsonb_build_object('text', v_out ->> 'plain', 'plain', v_out ->> 'plain');
	end if;
	return v_out;
end
$$;

create or replace function autopost.media_steps(p_media jsonb, p_platform autopost.platforms) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: groups the media into messages, in order: [{"step": "media-1", "items": [0, 1]}, …].
declare
	v_steps jsonb := '[]';
	v_items jsonb := '[]';
	v_set jsonb;
	v_item record;
begin
	for v_item in
		select e.ordinality::int - 1 as n,
			(select t.value from jsonb_array_elements(p_platform.together) t
				where t.value ? (e.value ->> 'type') limit 1) as fits
		from jsonb_array_elements(p_media) with ordinality e
	loop
		if v_items <> '[]' and (v_item.fits is null or v_item.fits is distinct from v_set
			or jsonb_array_length(v_items) >= p_platform.media_per_step) then
			v_steps := v_steps || jsonb_build_object('step', 'media-' || jsonb_array_length(v_steps) + 1,
				'items', v_items);
			v_items := '[]';
		end if;
		v_items := v_items || to_jsonb(v_item.n);
		v_set := v_item.fits;
	end loop;
	return v_steps || jsonb_build_object('step', 'media-' || jsonb_array_length(v_steps) + 1, 'items', v_items);
end
$$;

create or replace function autopost.id_refusal(p_item jsonb, p_platform autopost.platforms, p_auth_ref text) returns text
language sql immutable parallel safe
as $$
-- Purpose: why a channel of p_auth_ref cannot use the platform's id of a medium, else null.
select case
	when p_item ->> 'auth_ref' <> p_auth_ref
		then format('its id belongs to the credential %s, the channel has %s', p_item ->> 'auth_ref', p_auth_ref)
	when p_item ?| '{file_id,attachment_token}' and not p_item ?| ('{blob_ref}' || p_platform.id_fields)
		then format('%s takes no %s; give url or blob_ref', p_platform.platform,
			case when p_item ? 'file_id' then 'file_id' else 'attachment_token' end) end
$$;

create or replace function autopost.media_refusal(p_media jsonb, p_places int[], p_platform autopost.platforms,
	p_sizes jsonb, p_auth_ref text) returns text
language sql immutable parallel safe
as $$
-- Purpose: why the platform would refuse one of the media at these indexes by type, id or size, else
--          null. p_sizes: blob_ref -> bytes, as far as known.
select min(case
	when not p_platform.media_bytes ? (e.medium ->> 'type')
		then format('media[%s]: %s takes no %s', e.place, p_platform.platform, e.medium ->> 'type')
	when (p_sizes ->> (e.medium ->> 'blob_ref'))::bigint > (p_platform.media_bytes ->> (e.medium ->> 'type'))::bigint
		then format('media[%s]: %s bytes, %s takes at most %s', e.place, p_sizes ->> (e.medium ->> 'blob_ref'),
			p_platform.platform, p_platform.media_bytes ->> (e.medium ->> 'type'))
	else format('media[%s]: ', e.place) || autopost.id_refusal(e.medium, p_platform, p_auth_ref)
	end)
from (select p.place, p_media -> p.place as medium from unnest(p_places) p (place)) e
$$;

create or replace function autopost.render_refused(p_reason text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the answer of render for a payload that the platform would refuse.
select jsonb_build_object('verdict', 'failed_permanent', 'reason', p_reason)
$$;

create or replace function autopost.render_body(p_payload jsonb, p_platform autopost.platforms,
	p_choice jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the text of a payload for one rendering, with its links and the channel's link
--          parameters. A text over the limit of its template or channel is cut before the links.
-- Returns: {"text", "html", "unit", "length", "truncated"} or {"error"}.
declare
	v_mode text := coalesce(p_choice ->> 'body_mode', p_choice ->> 'parse_mode', 'None');
	v_html boolean := v_mode <> 'None' and p_platform.dialect <> 'plain';
	v_unit text := case when p_platform.counts_markup then 'markup' else p_platform.length_unit end;
	v_limit int := least(case when p_choice ? 'template_version'
		then coalesce((p_choice ->> 'max_length')::int, p_platform.template_limit) end,
		case when p_choice ->> 'long_text' = 'truncate' then p_platform.text_limit end);
	v_source text := coalesce(p_choice ->> 'body', p_choice -> 'variant' ->> 'text', p_payload ->> 'text');
	v_whole jsonb;
	v_text text; -- without the added links
	v_link text;
	v_out text;
begin
	v_whole := autopost.render_text(v_source, autopost.links_to_add(coalesce(v_source, ''),
		coalesce(p_choice -> 'variant' ->> 'link', p_payload ->> 'link'), p_payload -> 'links'), v_mode, p_platform.dialect);
	if v_whole ? 'error' then
		return v_whole;
	end if;
	v_out := translate(v_whole ->> 'text', p_platform.forbidden, '');
	v_out := case when p_choice ? 'utm' then autopost.links_with_params(v_out, v_html, p_choice -> 'utm') else v_out
		end;
	if autopost.length_in(v_out, v_html, v_unit) > v_limit then
		v_text := translate(autopost.render_text(v_source, null, v_mode, p_platform.dialect) ->> 'text',
			p_platform.forbidden, '');
		v_text := case when p_choice ? 'utm' then autopost.links_with_params(v_text, v_html, p_choice -> 'utm')
			else v_text end;
		v_link := substr(v_out, char_length(v_text) + 1);
		v_out := autopost.shorten_text(v_text, v_html, v_limit - autopost.measure(v_link, v_unit), v_unit) || v_link;
		v_whole := v_whole || '{"truncated": true}';
	end if;
	return jsonb_build_object('text', v_out, 'html', v_html, 'unit', v_unit,
		'length', autopost.length_in(v_out, v_html, v_unit), 'truncated', v_whole -> 'truncated');
end
$$;

create or replace function autopost.caption_refusal(p_media jsonb, p_places int[],
	p_platform autopost.platforms) returns text
language sql immutable parallel safe
as $$
-- Purpose: why the platform would refuse the caption of one of the media at these indexes, else null.
select format('media[%s].caption is longer than %s characters', min(p.place), p_platform.caption_limit)
from unnest(p_places) p (place)
where autopost.measure(p_media -> p.place ->> 'caption', p_platform.length_unit) > p_platform.caption_limit
having count(*) > 0
$$;

create or replace function autopost.with_captions(p_steps jsonb, p_media jsonb, p_html boolean) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: adds the captions of the media to their steps.
select case when not exists (select 1 from jsonb_array_elements(p_media) e where e.value ? 'caption')
	then p_steps else (
	select jsonb_agg(s.value || jsonb_build_object('captions', (
		select jsonb_agg(case when p_html then to_jsonb(autopost.html_escape(p_media -> i.value::int ->> 'caption'))
			else p_media -> i.value::int -> 'caption' end order by i.ordinality)
		from jsonb_array_elements_text(s.value -> 'items') with ordinality i)) order by s.ordinality)
	from jsonb_array_elements(p_steps) with ordinality s) end
$$;

create or replace function autopost.text_steps(p_body jsonb, p_first int, p_limit int, p_reply_to text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: a text as steps: one step "text" if it fits, else "text-1", "text-2", … with their own
--          bodies. With p_reply_to the first part (at most p_first) belongs to that step, and the
--          others reply to it.
select case when p_reply_to is null and (p_body ->> 'length')::int <= p_limit
	then '[{"step": "text", "text": true}]' else (
	select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
		'step', case when p_reply_to is null then 'text-' || t.n when t.n = 1
			then p_reply_to else 'text-' || t.n - 1 end,
		'text', true, 'body', t.part, 'reply_to', case when t.n > 1 then p_reply_to end)) order by t.n)
	from unnest(autopost.split_text(p_body ->> 'text', (p_body -> 'html')::boolean, p_first, p_limit,
		p_body ->> 'unit')) with ordinality t (part, n)) end
$$;

create or replace function autopost.plan_steps(p_body jsonb, p_media jsonb, p_buttons boolean,
	p_platform autopost.platforms, p_long_text text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the steps that show a text and media. The text is the caption of the first media if it
--          fits, else it goes before them. With caption_reply its start is the caption and the rest
--          replies to it.
declare
	v_bare boolean := btrim(autopost.visible_text(p_body ->> 'text', (p_body -> 'html')::boolean), E' \n') = '';
	v_steps jsonb;
	v_texts jsonb;
	v_captioned boolean; -- the first media have own captions
begin
	if p_media = '[]' and (p_body ->> 'length')::int <= p_platform.text_limit then
		return '[{"step": "text", "text": true}]';
	elsif p_media = '[]' then
		return autopost.text_steps(p_body, p_platform.text_limit, p_platform.text_limit, null);
	end if;
	v_steps := autopost.with_captions(autopost.media_steps(p_media, p_platform), p_media, (p_body -> 'html')::boolean);
	if v_bare then
		return jsonb_set(v_steps, '{0,text}', 'false');
	end if;
	v_captioned := coalesce(case when p_platform.item_captions
		then v_steps #> '{0,captions,0}' <> 'null' else v_steps -> 0 -> 'captions' @? '$[*] ? (@ != null)' end, false);
	if not v_captioned and (p_body ->> 'length')::int <= p_platform.caption_limit
		and not (p_buttons and not p_platform.album_buttons and jsonb_array_length(v_steps -> 0 -> 'items') > 1)
	then
		return jsonb_set(v_steps, '{0,text}', 'true');
	elsif not v_captioned and (p_body ->> 'length')::int > p_platform.caption_limit and p_long_text = 'caption_reply'
		then
		v_texts := autopost.text_steps(p_body, p_platform.caption_limit, p_platform.text_limit,
			v_steps -> 0 ->> 'step');
		return jsonb_build_array(v_steps -> 0 || (v_texts -> 0)) || (v_steps - 0) || (v_texts - 0);
	end if;
	return autopost.text_steps(p_body, p_platform.text_limit, p_platform.text_limit, null) || v_steps;
end
$$;

create or replace function autopost.threaded(p_steps jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: steps of which each replies to the one before.
select jsonb_agg(s.step || jsonb_strip_nulls(jsonb_build_object('reply_to', s.before)) order by s.n)
from (select e.value as step, e.ordinality as n, lag(e.value -> 'step') over (order by e.ordinality) as before
	from jsonb_array_elements(p_steps) with ordinality e) s
$$;

create or replace function autopost.with_account_limit(p_platform autopost.platforms,
	p_length jsonb) returns autopost.platforms
language plpgsql immutable parallel safe
as $$
-- Purpose: replaces the platform's limits of a text by that of an account
-- (settings.max_weighted_length). A template keeps its reserve.
declare
	v_reserve int := p_platform.text_limit - p_platform.template_limit;
begin
	if p_platform.length_unit = 'weighted' and jsonb_typeof(p_length) = 'number'
		and p_length::numeric between 1 and 1000000 then
		p_platform.text_limit := p_length::int;
		p_platform.caption_limit := p_platform.text_limit;
		p_platform.template_limit := greatest(p_platform.text_limit - v_reserve, 1);
	end if;
	return p_platform;
end
$$;

create or replace function autopost.render(
	p_payload jsonb, p_platform autopost.platforms, p_choice jsonb, p_sizes jsonb
) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: preflight and rendering of a payload for one platform and one rendering_choice (after
--          with_template). Runs once per platform and choice, not per channel.
-- Returns: {"verdict": "queued", "text", "meta", "template_version"}; or {"verdict": "skipped" |
--          "failed_permanent", "reason"}.
declare
	v_mode text := p_choice ->> 'send_mode';
	v_given jsonb := coalesce(p_payload -> 'media', '[]');
	v_later jsonb := case when p_payload ?| '{thread,first_comment}' or p_choice -> 'variant' ?| '{thread,first_comment}'
		then autopost.later_content(p_payload, p_choice -> 'variant') else '{}' end;
	v_chosen int[] := case when v_mode = 'text' or v_given = '[]' then '{}' when p_choice -> 'variant' ? 'media'
		then array(select jsonb_array_elements_text(p_choice -> 'variant' -> 'media')::int)
		else array(select generate_series(0, jsonb_array_length(v_given) - 1)) end;
	v_places int[] := case when v_later = '{}' then v_chosen
		else autopost.first_part_media(v_chosen, v_later) end; -- indexes of the media of part 1
	v_whole boolean := v_later = '{}' and not coalesce(p_choice -> 'variant' ? 'media', false); -- all media in order
	v_body jsonb;
	v_steps jsonb;
	v_notes jsonb := '[]';
	v_buttons jsonb := coalesce(p_choice -> 'variant' -> 'buttons', p_payload -> 'buttons');
	v_refusal text := p_choice ->> 'refusal';
begin
	p_platform := autopost.with_account_limit(p_platform, p_choice -> 'max_weighted_length');
	if v_refusal is not null then
		return autopost.render_refused(v_refusal);
	end if;
	v_body := autopost.render_body(p_payload, p_platform, p_choice);
	if v_body ? 'error' then
		return autopost.render_refused('can''t parse the markup: ' || (v_body ->> 'error'));
	end if;
	if v_chosen = '{}' and (v_mode = 'media' or autopost.is_blank(v_body)) then
		return jsonb_build_object('verdict', 'skipped', 'reason', format('the channel takes %s only', v_mode));
	elsif v_chosen = '{}' and p_platform.needs_media then
		return jsonb_build_object('verdict', 'skipped',
			'reason', format('%s takes posts with media only', p_platform.platform));
	elsif p_platform.takes = 'videos' then
		return autopost.render_video(p_payload, p_platform, p_choice, p_sizes, v_body);
	elsif v_later <> '{}' and v_places = '{}' and autopost.is_blank(v_body) then
		return autopost.render_refused('part 1 of the thread is empty for this channel; give it text or a medium');
	end if;
	if v_later <> '{}' then
		v_later := autopost.render_later(p_payload, p_platform, p_choice, v_later, v_body, v_chosen);
		if v_later ? 'refusal' then
			return autopost.render_refused(v_later ->> 'refusal');
		end if;
		v_body := v_later -> 'body';
	end if;
	if v_mode = 'text' and p_payload ? 'media' then
		v_notes := v_notes || '["media dropped: the channel takes text only"]';
	end if;
	if v_buttons is not null and p_platform.button_rows = 0 then
		v_notes := v_notes || jsonb_build_array(format('buttons dropped: %s has none', p_platform.platform));
		v_buttons := null;
	end if;
	v_refusal := coalesce(
		case when v_chosen <> '{}' then coalesce(autopost.media_refusal(v_given, v_chosen, p_platform, p_sizes,
				p_choice ->> 'auth_ref'),
			autopost.caption_refusal(v_given, v_chosen, p_platform)) end,
		case when jsonb_array_length(v_buttons) > p_platform.button_rows
			or exists (select 1 from jsonb_array_elements(v_buttons) r
				where jsonb_array_length(r.value) > p_platform.buttons_per_row)
			then format('buttons: %s takes at most %s rows of %s', p_platform.platform, p_platform.button_rows,
				p_platform.buttons_per_row) end,
		case when (v_body ->> 'length')::int > p_platform.text_limit
			then autopost.text_refusal(v_body, p_platform, p_choice ->> 'long_text', 'text') end);
	if v_refusal is not null then
		return autopost.render_refused(v_refusal);
	end if;
	v_steps := autopost.plan_steps(v_body, case when v_places = '{}' then '[]' when v_whole then v_given
		else autopost.media_at(v_given, v_places) end, v_buttons is not null, p_platform, p_choice ->> 'long_text');
	v_steps := case when v_whole or v_places = '{}' then v_steps else autopost.with_places(v_steps, v_places) end;
	if v_buttons is not null and not p_platform.album_buttons and jsonb_array_length(coalesce(
		jsonb_path_query_array(v_steps, '$[*] ? (@.text == true)') -> -1, v_steps -> 0) -> 'items') > 1
	then
		v_notes := v_notes || '["buttons dropped: an album cannot carry them"]';
		v_buttons := null;
	end if;
	if v_later <> '{}' or p_platform.threads then
		v_steps := autopost.joined_steps(v_steps, v_later, p_platform);
	end if;
	return jsonb_strip_nulls(jsonb_build_object('verdict', 'queued', 'text', v_body -> 'text',
		'template_version', p_choice -> 'template_version', 'meta', jsonb_build_object(
		'parse_mode', case when (v_body -> 'html')::boolean then 'HTML' end,
		'disable_preview', coalesce(p_choice -> 'variant' -> 'disable_preview', p_payload -> 'disable_preview',
			p_choice -> 'disable_preview'),
		'buttons', case when p_choice ? 'utm' then autopost.buttons_with_params(v_buttons, p_choice -> 'utm')
			else v_buttons end,
		'length', v_body -> 'length',
		'length_limit', p_platform.text_limit,
		'truncated', v_body -> 'truncated',
		'post', autopost.post_variant(p_choice -> 'variant', p_platform.post_fields),
		'notes', nullif(v_notes, '[]'),
		'steps', v_steps)));
end
$$;
