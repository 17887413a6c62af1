create or replace function autopost.utf16_length(p_text text) returns int
language sql immutable parallel safe
as $$
-- Purpose: the length in UTF-16 code units. It is never below the number of code points, so the
--          limit holds in both.
select char_length(p_text) + char_length(regexp_replace(p_text, '[^\U00010000-\U0010FFFF]', '', 'g'))
$$;

create or replace function autopost.fold(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: case folding that does not depend on the locale of the database.
select lower(p_text collate "und-x-icu")
$$;

create or replace function autopost.html_escape(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: escapes &, < and >.
select replace(replace(replace(p_text, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')
$$;

create or replace function autopost.html_unescape(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: decodes the named entities of both HTML dialects and numeric ones. Any other entity
--          stays.
declare
	v_text text := p_text;
	v_entity text;
	v_code int;
begin
	if strpos(v_text, '&') = 0 then
		return v_text;
	end if;
	for v_entity in select distinct m[1]
		from regexp_matches(v_text, '(&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});)', 'g') m loop
		v_code := case when lower(substr(v_entity, 3, 1)) = 'x'
			then ('x' || lpad(substr(v_entity, 4, length(v_entity) - 4), 8, '0'))::bit(32)::int
			else substr(v_entity, 3, length(v_entity) - 3)::int end;
		if v_code between 32 and 1114109 and v_code not between 55296 and 57343 or v_code in (9, 10) then
			v_text := replace(v_text, v_entity, case when v_code = 38 then '&amp;' else chr(v_code) end);
		end if;
	end loop;
	return replace(replace(replace(replace(v_text, '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&amp;', '&');
end
$$;
