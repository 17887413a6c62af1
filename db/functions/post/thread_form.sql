-- Threads and first comments. `thread` holds parts 2 and on of a post: each has a text, and numbers of the post's
-- media from 1. `first_comment` replies to the first message.

create or replace function autopost.thread_fields() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the fields of a post and of a variant that add messages.
select '{thread,first_comment}'::text[]
$$;

create or replace function autopost.part_errors(p_part jsonb, p_at text, p_media int) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the errors in the form of one part of a thread, as {field, reason, remedy}. p_media: the number
--          of the post's media.
select case
	when jsonb_typeof(p_part) <> 'object'
		then autopost.field_error(p_at, 'must be an object', 'write {"text": "…", "media": [1]}')
	when p_part ? 'text' and jsonb_typeof(p_part -> 'text') <> 'string'
		then autopost.field_error(p_at || '.text', 'must be a JSON string', 'correct the type, or leave the field out')
	when p_part ? 'media' and jsonb_typeof(p_part -> 'media') <> 'array'
		then autopost.field_error(p_at || '.media', 'must be an array of numbers', 'write [1]')
	when btrim(coalesce(p_part ->> 'text', ''), E' \n\r\t') = '' and coalesce(p_part -> 'media', '[]') = '[]'
		then autopost.field_error(p_at, 'must have text or media', 'give one of them, or leave the part out')
	else coalesce((
		select autopost.field_error(p_at || '.media', format('must have numbers of media from 1 to %s, got %s', p_media,
			left(m.value::text, 100)), 'number the media of the post from 1')
		from jsonb_array_elements(p_part -> 'media') with ordinality m
		where case when m.value::text ~ '^[0-9]{1,4}$' then m.value::text::int not between 1 and p_media else true end
		order by m.ordinality limit 1), '[]') end
$$;

create or replace function autopost.thread_errors(p_fields jsonb, p_at text, p_media jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors in the thread and the first comment of a post or a variant, as {field, reason,
--          remedy}. p_at begins the names of fields: "" or the name of the variant and a dot. A variant
--          removes the post's by null or an empty value. p_media: the media of the post.
declare
	v_thread jsonb := p_fields -> 'thread';
	v_comment jsonb := p_fields -> 'first_comment';
	v_errors jsonb := '[]';
begin
	if p_at <> '' then
		v_thread := nullif(v_thread, 'null');
		v_comment := nullif(nullif(v_comment, 'null'), '""');
	end if;
	if jsonb_typeof(v_comment) <> 'string' then
		v_errors := autopost.field_error(p_at || 'first_comment', 'must be a JSON string',
			'correct the type, or leave the field out');
	elsif btrim(v_comment #>> '{}', E' \n\r\t') = '' then
		v_errors := autopost.field_error(p_at || 'first_comment', 'must not be blank', 'give a text, or leave it out');
	end if;
	if jsonb_typeof(v_thread) <> 'array' then
		return v_errors || autopost.field_error(p_at || 'thread', 'must be an array of parts',
			'write [{"text": "…", "media": [1]}]');
	elsif jsonb_array_length(v_thread) > 24 then
		return v_errors || autopost.field_error(p_at || 'thread', format('must have at most 24 parts, got %s',
			jsonb_array_length(v_thread)), 'split the post');
	end if;
	v_errors := v_errors || (
		select coalesce(jsonb_agg(x.error order by e.ordinality), '[]')
		from jsonb_array_elements(coalesce(v_thread, '[]')) with ordinality e
		cross join lateral jsonb_array_elements(autopost.part_errors(e.value, format('%sthread[%s]', p_at,
			e.ordinality - 1), coalesce(jsonb_array_length(p_media), 0))) x (error));
	if v_errors <> '[]' then
		return v_errors;
	end if;
	return v_errors || (
		select coalesce(jsonb_agg(autopost.field_error(format('%sthread[%s].media', p_at, m.part),
			format('must name medium %s once', m.number), 'name each medium in one part') -> 0 order by m.part,
				m.number),
			'[]')
		from (
			select n.value as number, max(e.ordinality) - 1 as part
			from jsonb_array_elements(coalesce(v_thread, '[]')) with ordinality e,
				jsonb_array_elements(coalesce(e.value -> 'media', '[]')) n
			group by n.value
			having count(*) > 1) m)
		|| (select case when (v_thread is not null or v_comment is not null) and s.n > 100000
			then autopost.field_error(p_at || case when v_thread is null then 'first_comment' else 'thread' end,
				format('must have at most 100000 characters together with the text, got %s', s.n), 'shorten the texts')
			else '[]' end
		from (select coalesce(length(p_fields ->> 'text'), 0) + coalesce(length(v_comment #>> '{}'), 0)
			+ coalesce(sum(length(e.value ->> 'text')), 0) as n
			from jsonb_array_elements(coalesce(v_thread, '[]')) e) s);
end
$$;

create or replace function autopost.first_part_errors(p_raw jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the error of a valid post whose thread leaves nothing for part 1.
begin
	return case when btrim(coalesce(p_raw ->> 'text', '')) = '' and btrim(coalesce(p_raw ->> 'link', '')) = ''
		and not p_raw ? 'template' and p_raw @? '$.thread[*]'
		and jsonb_array_length(p_raw -> 'media') = (select count(*) from jsonb_path_query(p_raw, '$.thread[*].media[*]'))
		then autopost.field_error('text', 'part 1 is empty: the thread names all media',
			'give text, or leave part 1 a medium')
		else '[]' end;
end
$$;

create or replace function autopost.normalize_thread(p_thread jsonb, p_parse_mode text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the parts of a thread with normalized texts and without empty fields.
begin
	return (select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
			'text', nullif(autopost.normalize_text(e.value ->> 'text', p_parse_mode), ''),
			'media', nullif(e.value -> 'media', '[]'))) order by e.ordinality), '[]')
		from jsonb_array_elements(autopost.parts_of(p_thread, 'array')) with ordinality e);
end
$$;
