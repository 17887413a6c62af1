create or replace function autopost.render_text(p_text text, p_link text, p_parse_mode text, p_dialect text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- A text in a platform's dialect, the link as its own last paragraph unless the text holds it already.
-- Returns {"text", "plain"} or {"error"}. Without parse_mode the text is plain and stays as it is.
declare
	v_html text;
	v_text text := coalesce(p_text, '');
	v_link text := case when p_link is null or strpos(v_text, p_link) > 0 or strpos(v_text, rtrim(p_link, '/')) > 0 then '' else p_link end;
	v_gap text := case when v_text <> '' and v_link <> '' then E'\n\n' else '' end;
	v_out jsonb;
begin
	if p_parse_mode is null or p_parse_mode = 'None' then
		return jsonb_build_object('text', v_text || v_gap || v_link, 'plain', v_text || v_gap || v_link);
	end if;
	v_html := case p_parse_mode when 'Markdown' then autopost.markdown_to_html(v_text) else v_text end;
	v_out := autopost.html_in_dialect(v_html || v_gap || autopost.html_escape(v_link), case p_dialect when 'plain' then 'max_html' else p_dialect end);
	if p_dialect = 'plain' and not v_out ? 'error' then
		return jsonb_build_object('text', v_out ->> 'plain', 'plain', v_out ->> 'plain');
	end if;
	return v_out;
end
$$;

create or replace function autopost.media_steps(p_media jsonb, p_platform autopost.platforms) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Which media go together in one message, in their order: [{"step": "media-1", "items": [0, 1]}, …].
declare
	v_steps jsonb := '[]';
	v_items jsonb := '[]';
	v_set jsonb;
	v_item record;
begin
	for v_item in
		select e.ordinality::int - 1 as n,
			(select t.value from jsonb_array_elements(p_platform.together) t where t.value ? (e.value ->> 'type') limit 1) as fits
		from jsonb_array_elements(p_media) with ordinality e
	loop
		if v_items <> '[]' and (v_item.fits is null or v_item.fits is distinct from v_set or jsonb_array_length(v_items) >= p_platform.media_per_step) then
			v_steps := v_steps || jsonb_build_object('step', 'media-' || jsonb_array_length(v_steps) + 1, 'items', v_items);
			v_items := '[]';
		end if;
		v_items := v_items || to_jsonb(v_item.n);
		v_set := v_item.fits;
	end loop;
	return v_steps || jsonb_build_object('step', 'media-' || jsonb_array_length(v_steps) + 1, 'items', v_items);
end
$$;

create or replace function autopost.media_refusal(p_media jsonb, p_platform autopost.platforms, p_sizes jsonb) returns text
language sql immutable parallel safe
as $$
-- Why the platform would refuse one of the media by type or size, or null. p_sizes: blob_ref -> bytes, as far as they are known.
select min(case
	when not p_platform.media_bytes ? (e.value ->> 'type')
		then format('media[%s]: %s takes no %s', e.ordinality - 1, p_platform.platform, e.value ->> 'type')
	when (p_sizes ->> (e.value ->> 'blob_ref'))::bigint > (p_platform.media_bytes ->> (e.value ->> 'type'))::bigint
		then format('media[%s]: %s bytes, %s takes at most %s', e.ordinality - 1, p_sizes ->> (e.value ->> 'blob_ref'), p_platform.platform, p_platform.media_bytes ->> (e.value ->> 'type'))
	end)
from jsonb_array_elements(p_media) with ordinality e
$$;

create or replace function autopost.render_refused(p_reason text) returns jsonb
language sql immutable parallel safe
as $$
select jsonb_build_object('verdict', 'failed_permanent', 'reason', p_reason)
$$;

create or replace function autopost.render(
	p_payload jsonb, p_platform autopost.platforms, p_choice jsonb, p_sizes jsonb
) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Preflight and rendering of one payload for one way of showing it on one platform (p_choice: parse_mode, send_mode, variant).
-- Returns {"verdict": "queued", "text", "meta"}, {"verdict": "skipped", "reason"} or {"verdict": "failed_permanent", "reason"}.
-- Called once per platform and choice, not per channel. Limits are the platform's (autopost.platforms).
declare
	v_mode text := p_choice ->> 'send_mode';
	v_media jsonb := case when v_mode = 'text' then '[]' else coalesce(p_payload -> 'media', '[]') end;
	v_body jsonb;
	v_caption jsonb;
	v_captions jsonb := '[]'; -- of each medium, rendered
	v_steps jsonb := '[]';
	v_notes jsonb := '[]';
	v_buttons jsonb := p_payload -> 'buttons';
	v_length int;
	v_apart boolean; -- the text goes ahead of the media, as a message of its own
	v_refusal text;
	v_item record;
begin
	v_body := autopost.render_text(coalesce(p_choice ->> 'variant', p_payload ->> 'text'), p_payload ->> 'link', p_choice ->> 'parse_mode', p_platform.dialect);
	if v_body ? 'error' then
		return autopost.render_refused('can''t parse the markup: ' || (v_body ->> 'error'));
	elsif v_media = '[]' and (v_mode = 'media' or btrim(v_body ->> 'plain') = '') then
		return jsonb_build_object('verdict', 'skipped', 'reason', format('the channel takes %s only', v_mode));
	end if;
	v_refusal := autopost.media_refusal(v_media, p_platform, p_sizes);
	if v_refusal is not null then
		return autopost.render_refused(v_refusal);
	end if;
	if v_mode = 'text' and p_payload ? 'media' then
		v_notes := v_notes || '["media dropped: the channel takes text only"]';
	end if;
	if jsonb_array_length(v_buttons) > p_platform.button_rows or exists (
		select 1 from jsonb_array_elements(v_buttons) r where jsonb_array_length(r.value) > p_platform.buttons_per_row
	) then
		return autopost.render_refused(format('buttons: %s takes at most %s rows of %s', p_platform.platform, p_platform.button_rows, p_platform.buttons_per_row));
	end if;
	v_length := autopost.utf16_length(v_body ->> case when p_platform.counts_markup then 'text' else 'plain' end);
	if v_length > p_platform.text_limit then
		return autopost.render_refused(format('text has %s characters, %s takes at most %s', v_length, p_platform.platform, p_platform.text_limit));
	end if;
	if v_media <> '[]' then
		v_steps := autopost.media_steps(v_media, p_platform);
		for v_item in select e.value ->> 'caption' as caption, e.ordinality - 1 as n from jsonb_array_elements(v_media) with ordinality e loop
			v_caption := autopost.render_text(v_item.caption, null, 'None', p_platform.dialect);
			if autopost.utf16_length(v_caption ->> 'plain') > p_platform.caption_limit then
				return autopost.render_refused(format('media[%s].caption is longer than %s characters', v_item.n, p_platform.caption_limit));
			end if;
			v_captions := v_captions || case
				when v_item.caption is null then 'null'::jsonb
				when p_choice ->> 'parse_mode' in ('HTML', 'Markdown') then to_jsonb(autopost.html_escape(v_item.caption))
				else to_jsonb(v_item.caption) end;
		end loop;
		v_apart := btrim(v_body ->> 'plain') <> '' and (
			v_length > p_platform.caption_limit
			or case when p_platform.item_captions then v_captions -> 0 <> 'null' else exists (
				select 1 from jsonb_array_elements_text(v_steps -> 0 -> 'items') i where v_captions -> i.value::int <> 'null') end
			or (v_buttons is not null and not p_platform.album_buttons and jsonb_array_length(v_steps -> 0 -> 'items') > 1));
		if v_captions <> '[]' and exists (select 1 from jsonb_array_elements(v_captions) c where c.value <> 'null') then
			v_steps := (select jsonb_agg(s.value || jsonb_build_object('captions',
				(select jsonb_agg(v_captions -> i.value::int order by i.ordinality) from jsonb_array_elements_text(s.value -> 'items') with ordinality i)) order by s.ordinality)
				from jsonb_array_elements(v_steps) with ordinality s);
		end if;
		if v_buttons is not null and not p_platform.album_buttons and not v_apart and jsonb_array_length(v_steps -> 0 -> 'items') > 1 then
			v_notes := v_notes || '["buttons dropped: an album cannot carry them"]';
			v_buttons := null;
		end if;
	end if;
	if v_media = '[]' or v_apart then
		v_steps := jsonb_build_array(jsonb_build_object('step', 'text', 'text', true)) || v_steps;
	else
		v_steps := jsonb_set(v_steps, '{0,text}', to_jsonb(btrim(v_body ->> 'plain') <> ''));
	end if;
	return jsonb_build_object('verdict', 'queued', 'text', v_body ->> 'text', 'meta', jsonb_strip_nulls(jsonb_build_object(
		'parse_mode', case when p_choice ->> 'parse_mode' in ('HTML', 'Markdown') and p_platform.dialect <> 'plain' then 'HTML' end,
		'disable_preview', coalesce(p_payload -> 'disable_preview', p_choice -> 'disable_preview'),
		'buttons', v_buttons,
		'length', v_length,
		'length_limit', p_platform.text_limit,
		'notes', nullif(v_notes, '[]'),
		'steps', v_steps)));
end
$$;
