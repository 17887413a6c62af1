create or replace function autopost.utf16_length(p_text text) returns int
language sql immutable parallel safe
as $$
-- Length in UTF-16 code units: never less than the count of code points, so a limit kept in it is kept in both.
select char_length(p_text) + char_length(regexp_replace(p_text, '[^\U00010000-\U0010FFFF]', '', 'g'))
$$;

create or replace function autopost.fold(p_text text) returns text
language sql immutable parallel safe
as $$
-- Case folding that does not depend on the database's locale.
select lower(p_text collate "und-x-icu")
$$;

create or replace function autopost.html_escape(p_text text) returns text
language sql immutable parallel safe
as $$
select replace(replace(replace(p_text, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')
$$;

create or replace function autopost.html_unescape(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- Decodes the named entities that both HTML dialects know, and numeric ones. Any other stays as it is written.
declare
	v_text text := p_text;
	v_entity text;
	v_code int;
begin
	if strpos(v_text, '&') = 0 then
		return v_text;
	end if;
	for v_entity in select distinct m[1] from regexp_matches(v_text, '(&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});)', 'g') m loop
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
