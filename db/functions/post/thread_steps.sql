-- The steps of a thread and of a first comment, after those of part 1.

create or replace function autopost.later_content(p_payload jsonb, p_variant jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the thread and the first comment of a post with its variant: {"thread", "comment"}, without
--          missing ones.
select jsonb_strip_nulls(jsonb_build_object(
	'thread', nullif(coalesce(p_variant -> 'thread', p_payload -> 'thread'), '[]'),
	'comment', nullif(coalesce(p_variant ->> 'first_comment', p_payload ->> 'first_comment'), '')))
$$;

create or replace function autopost.first_part_media(p_chosen int[], p_later jsonb) returns int[]
language sql immutable parallel safe
as $$
-- Purpose: the media of part 1, as indexes: those of p_chosen that no part of the thread names.
select array(
	select c.place from unnest(p_chosen) with ordinality c (place, n)
	where not exists (select 1 from jsonb_path_query(p_later, '$.thread[*].media[*]') m
		where (m #>> '{}')::int = c.place + 1)
	order by c.n)
$$;

create or replace function autopost.media_at(p_media jsonb, p_places int[]) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the media at these indexes, in their order.
select coalesce(jsonb_agg(p_media -> p.place order by p.n), '[]') from unnest(p_places) with ordinality p (place, n)
$$;

create or replace function autopost.with_places(p_steps jsonb, p_places int[]) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: steps whose items are indexes in p_places, with those in the media of the post.
select jsonb_agg(s.value || case when s.value ? 'items' then jsonb_build_object('items', (
	select jsonb_agg(p_places[i.value::int + 1] order by i.ordinality)
	from jsonb_array_elements_text(s.value -> 'items') with ordinality i)) else '{}' end order by s.ordinality)
from jsonb_array_elements(p_steps) with ordinality s
$$;

create or replace function autopost.text_refusal(p_body jsonb, p_platform autopost.platforms, p_long_text text,
	p_field text) returns text
language sql immutable parallel safe
as $$
-- Purpose: why the platform would refuse a rendered text by its length, else null.
select case when (p_body ->> 'length')::int > p_platform.text_limit
	and coalesce(p_long_text not in ('split', 'caption_reply'), true)
	or (p_body ->> 'length')::int > p_platform.text_limit * p_platform.max_parts
	then format('%s has %s %s, %s takes at most %s', p_field, p_body ->> 'length', case p_body ->> 'unit' when 'bytes'
		then 'bytes' else 'characters' end, p_platform.platform, p_platform.text_limit) end
$$;

create or replace function autopost.in_html(p_body jsonb, p_html boolean) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: a rendered text as HTML if p_html; all texts of a delivery have one form.
select case when p_html and p_body -> 'html' = 'false' then p_body || jsonb_build_object('html', true,
	'text', autopost.html_escape(p_body ->> 'text'),
	'length', autopost.length_in(autopost.html_escape(p_body ->> 'text'), true, p_body ->> 'unit')) else p_body end
$$;

create or replace function autopost.is_blank(p_body jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a rendered text shows nothing.
select btrim(autopost.visible_text(p_body ->> 'text', (p_body -> 'html')::boolean), E' \n') = ''
$$;

create or replace function autopost.part_steps(p_n int, p_part jsonb, p_body jsonb, p_media jsonb, p_chosen int[],
	p_platform autopost.platforms, p_long_text text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the steps of part p_n of a thread, from its rendered text. Media that the channel does not take
--          (not in p_chosen) are left out. Each text is in its step: the delivery's text is that of part 1.
-- Returns: the steps; null if nothing is left of the part.
declare
	v_places int[] := array(select m.value::int - 1 from jsonb_array_elements_text(p_part -> 'media') with ordinality m
		where m.value::int - 1 = any (p_chosen) order by m.ordinality);
begin
	if v_places = '{}' and autopost.is_blank(p_body) then
		return null;
	end if;
	return (
		select jsonb_agg(s.value || jsonb_strip_nulls(jsonb_build_object('part', p_n,
			'step', format('part-%s.%s', p_n, s.value ->> 'step'),
			'body', case when s.value -> 'text' = 'true' then coalesce(s.value -> 'body', p_body -> 'text') end,
			'reply_to', format('part-%s.', p_n) || (s.value ->> 'reply_to'))) order by s.ordinality)
		from jsonb_array_elements(autopost.with_places(autopost.plan_steps(p_body,
			autopost.media_at(p_media, v_places), false, p_platform, p_long_text), v_places)) with ordinality s);
end
$$;

create or replace function autopost.later_bodies(p_later jsonb, p_platform autopost.platforms, p_choice jsonb)
	returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the rendered texts of the parts of a thread and, last, of the first comment. The template and
--          the links of the post belong to part 1.
-- Returns: an array of bodies (render_body), or {"refusal"}.
declare
	v_choice jsonb := p_choice - '{body,body_mode,template_version,max_length,variant}'::text[];
	v_bodies jsonb := '[]';
	v_text record;
	v_body jsonb;
	v_refusal text;
begin
	for v_text in
		select format('thread[%s]', e.ordinality - 1) as field, e.value ->> 'text' as said, e.ordinality as n
		from jsonb_array_elements(p_later -> 'thread') with ordinality e
		union all
		select 'first_comment', p_later ->> 'comment', 1000 where p_later ? 'comment'
		order by n
	loop
		v_body := autopost.render_body(jsonb_build_object('text', v_text.said), p_platform, v_choice);
		v_refusal := case when v_body ? 'error'
			then format('%s: can''t parse the markup: %s', v_text.field, v_body ->> 'error')
			when v_text.field = 'first_comment' and autopost.is_blank(v_body) then 'first_comment shows nothing'
			else autopost.text_refusal(v_body, p_platform, case when v_text.field <> 'first_comment'
				then p_choice ->> 'long_text' end, v_text.field) end;
		if v_refusal is not null then
			return jsonb_build_object('refusal', v_refusal);
		end if;
		v_bodies := v_bodies || v_body;
	end loop;
	return v_bodies;
end
$$;

create or replace function autopost.repeated_text(p_body jsonb, p_bodies jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the refusal of a thread in which two messages have the same text; null if none has. X accepts
--          the same text once.
select format('thread: two messages say "%s", and x takes a text once; change one of them', left(b.text, 50))
from (
	select btrim(e.value ->> 'text') as text from jsonb_array_elements(jsonb_build_array(p_body) || p_bodies) e) b
where b.text <> ''
group by b.text
having count(*) > 1
limit 1
$$;

create or replace function autopost.render_later(p_payload jsonb, p_platform autopost.platforms, p_choice jsonb,
	p_later jsonb, p_body jsonb, p_chosen int[]) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the thread and the first comment of a post whose part 1 has the text p_body. p_later: from
--          later_content. p_chosen: indexes of the media that the channel takes.
-- Returns: {"body": that of part 1, "parts": the steps of each part, "comment": its step}, or {"refusal"}.
declare
	v_bodies jsonb := autopost.later_bodies(p_later, p_platform, p_choice);
	v_count int := coalesce(jsonb_array_length(p_later -> 'thread'), 0);
	v_html boolean;
	v_steps jsonb;
	v_parts jsonb := '[]';
begin
	if p_later ? 'comment' and not p_platform.replies then
		return jsonb_build_object('refusal',
			format('first_comment: %s takes none; set variants.%s.first_comment to null',
			p_platform.platform, p_platform.platform));
	elsif jsonb_typeof(v_bodies) = 'object' then
		return v_bodies;
	elsif p_platform.platform = 'x' and autopost.repeated_text(p_body, v_bodies) is not null then
		return jsonb_build_object('refusal', autopost.repeated_text(p_body, v_bodies));
	end if;
	v_html := jsonb_build_array(p_body) || v_bodies @? '$[*] ? (@.html == true)';
	for v_n in 1 .. v_count loop
		v_steps := autopost.part_steps(v_n + 1, p_later -> 'thread' -> v_n - 1,
			autopost.in_html(v_bodies -> v_n - 1, v_html), coalesce(p_payload -> 'media', '[]'), p_chosen, p_platform,
			p_choice ->> 'long_text');
		continue when v_steps is null and p_choice ->> 'send_mode' = 'text'; -- render notes the dropped media
		if v_steps is null then
			return jsonb_build_object('refusal',
				format('thread[%s]: nothing is left of the part; give it text, or media that the variant keeps',
					v_n - 1));
		end if;
		v_parts := v_parts || jsonb_build_array(v_steps);
	end loop;
	return jsonb_build_object('body', autopost.in_html(p_body, v_html), 'parts', v_parts)
		|| case when p_later ? 'comment' then jsonb_build_object('comment', jsonb_build_object('step', 'comment',
			'comment', true, 'text', true, 'body', autopost.in_html(v_bodies -> v_count,
				v_html) -> 'text')) else '{}' end;
end
$$;

create or replace function autopost.joined_steps(p_first jsonb, p_later jsonb,
	p_platform autopost.platforms) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: all steps of a post, from those of part 1 and render_later. On a platform with reply chains each
--          step replies to the one before; elsewhere the first step of a part replies to that of the part
--          before. The first comment replies to the first message.
declare
	v_steps jsonb := p_first;
	v_before jsonb := p_first -> 0 -> 'step';
	v_part jsonb;
begin
	for v_part in select e.value
		from jsonb_array_elements(p_later -> 'parts') with ordinality e order by e.ordinality loop
		v_steps := v_steps || case when p_platform.replies then jsonb_set(v_part, '{0,reply_to}', v_before)
			else v_part end;
		v_before := v_part -> 0 -> 'step';
	end loop;
	if p_platform.threads then
		v_steps := autopost.threaded(v_steps);
	end if;
	return v_steps || case when p_later ? 'comment' then jsonb_build_array(
		p_later -> 'comment' || jsonb_build_object('reply_to', p_first -> 0 -> 'step')) else '[]' end;
end
$$;

create or replace function autopost.later_texts(p_meta jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: what a rendering shows after part 1: [{"step", "text", "items"}]; null if nothing.
begin
	return (select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('step', s.value -> 'step', 'text', s.value -> 'body',
			'items', s.value -> 'items')) order by s.ordinality)
		from jsonb_array_elements(p_meta -> 'steps') with ordinality s
		where s.value ?| '{part,comment}');
end
$$;

create or replace function autopost.shown_texts(p_text text, p_later jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: everything that a rendering says, for the digest of an approval. p_later: from later_texts.
select p_text || coalesce(p_later::text, '')
$$;

create or replace function autopost.without_comment(p_meta jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: a render_meta without the step of the first comment.
select p_meta || jsonb_build_object('steps', jsonb_path_query_array(p_meta, '$.steps[*] ? (!(@.comment == true))'))
$$;
