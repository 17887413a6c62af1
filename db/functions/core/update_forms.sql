create or replace function autopost.id_in(p_value jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: a number of a platform as target id; null for any other JSON type.
select case when jsonb_typeof(p_value) = 'number' and p_value #>> '{}' ~ '^-?[0-9]{1,19}$' then p_value #>> '{}' end
$$;

create or replace function autopost.words_in(p_value jsonb, p_length int) returns text
language sql immutable parallel safe
as $$
-- Purpose: the first characters of a JSON string; null for an empty one and for other types.
select case when jsonb_typeof(p_value) = 'string' then nullif(left(p_value #>> '{}', p_length), '') end
$$;

create or replace function autopost.platform_instant(p_value jsonb, p_per_second int) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: a platform's instant counted since 1970; null if it is not in this century.
select case when jsonb_typeof(p_value) = 'number' and (p_value #>> '{}')::numeric between 0 and 4102444800::numeric
	* p_per_second
	then to_timestamp(((p_value #>> '{}')::numeric / p_per_second)::float8) end
$$;

create or replace function autopost.capped_texts(p_update jsonb, p_length int) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: an update whose message texts are cut to the longest possible message.
declare
	v_path text[];
	v_update jsonb := p_update;
begin
	foreach v_path slice 1 in array array[['message', 'text', ''], ['message', 'caption', ''],
		['channel_post', 'text', ''], ['channel_post', 'caption', ''], ['message', 'body', 'text']] loop
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
-- Purpose: the key that identifies a repeated update: its parts, or the digest of the update if a
--          part is missing. At most 256 bytes.
select case
	when array_position(p_parts, null) is not null
		then 'digest ' || encode(sha256(convert_to(p_update::text, 'UTF8')), 'hex')
	when octet_length(array_to_string(p_parts, ' ')) > 256
		then 'digest ' || encode(sha256(convert_to(array_to_string(p_parts, ' '), 'UTF8')), 'hex')
	else array_to_string(p_parts, ' ') end
$$;
