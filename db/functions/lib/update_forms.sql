create or replace function autopost.id_in(p_value jsonb) returns text
language sql immutable parallel safe
as $$
-- A number of a platform as the text that targets are written in; null for anything else.
select case when jsonb_typeof(p_value) = 'number' and p_value #>> '{}' ~ '^-?[0-9]{1,19}$' then p_value #>> '{}' end
$$;

create or replace function autopost.words_in(p_value jsonb, p_length int) returns text
language sql immutable parallel safe
as $$
-- The beginning of a string of a platform; null for anything else, and for an empty one.
select case when jsonb_typeof(p_value) = 'string' then nullif(left(p_value #>> '{}', p_length), '') end
$$;

create or replace function autopost.platform_instant(p_value jsonb, p_per_second int) returns timestamptz
language sql immutable parallel safe
as $$
-- An instant that a platform counts since 1970; null for what is none of this century.
select case when jsonb_typeof(p_value) = 'number' and (p_value #>> '{}')::numeric between 0 and 4102444800::numeric * p_per_second
	then to_timestamp(((p_value #>> '{}')::numeric / p_per_second)::float8) end
$$;

create or replace function autopost.capped_texts(p_update jsonb, p_length int) returns jsonb
language plpgsql immutable parallel safe
as $$
-- The update with no message's text longer than a message of the platform can be.
declare
	v_path text[];
	v_update jsonb := p_update;
begin
	foreach v_path slice 1 in array array[['message', 'text', ''], ['message', 'caption', ''], ['channel_post', 'text', ''], ['channel_post', 'caption', ''], ['message', 'body', 'text']] loop
		v_path := array_remove(v_path, '');
		if jsonb_typeof(p_update #> v_path) = 'string' and length(p_update #>> v_path) > p_length then
			v_update := jsonb_set(v_update, v_path, to_jsonb(left(p_update #>> v_path, p_length)));
		end if;
	end loop;
	return v_update;
end
$$;

create or replace function autopost.update_key(p_update jsonb, p_parts text[]) returns text
language sql immutable parallel safe
as $$
-- What repeats of an update are known by: its parts, or its own digest where one of them is missing; at most 256 bytes.
select case
	when array_position(p_parts, null) is not null then 'digest ' || encode(sha256(convert_to(p_update::text, 'UTF8')), 'hex')
	when octet_length(array_to_string(p_parts, ' ')) > 256 then 'digest ' || encode(sha256(convert_to(array_to_string(p_parts, ' '), 'UTF8')), 'hex')
	else array_to_string(p_parts, ' ') end
$$;
