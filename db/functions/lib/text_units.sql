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

create or replace function autopost.mark_links(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- A composed text with one chr(1) in the place of all that X makes a link of, and no other. Without its scheme a name is a link where its last
-- label has two letters or is a common one; X's whole list is the adapter's to know.
declare
	v_host constant text := '(?:(?!-)[a-z0-9_-]{1,63}\.)+';
	v_host_of_words constant text := '(?:(?:(?!-)[a-z0-9_-]{1,63}|[a-z0-9_\u00A1-\u1FFF\u2C00-\u2FFF\u3040-\uD7FF-]{1,52})\.)+'; -- 63 in punycode at most, of most words
	v_rest constant text := '(?![a-z0-9@_-])(?::[0-9]{1,5})?(?:/(?:[a-z0-9\u00C0-\u024F\u0400-\u052F!*'';:=+,.$%#~_@/&|()\[\]-]*[a-z0-9\u00C0-\u024F\u0400-\u052F=_#/+&)-])?)?'
		|| '(?:\?[a-z0-9!?*''@();:&=+$/%#\[\]_.,~|-]*[a-z0-9_&=#/-])?';
	v_name constant text := '(?:[a-z]{2}|com|org|net|edu|gov|mil|int|info|biz|name|pro|mobi|asia|travel|museum|app|dev|page|blog|shop|store|online|site|website|space|'
		|| 'tech|cloud|digital|agency|studio|design|media|news|live|video|music|games|world|today|life|club|team|work|email|link|click|xyz|top|moscow|tatar|рф|москва)';
begin
	return regexp_replace(translate(normalize(p_text, NFC), chr(1) || chr(2), ''),
		'(?<![a-z0-9@＠$#＃_.-])(?:https?://' || v_host_of_words || '(?:xn--[a-z0-9-]+|[a-z\u00A1-\u1FFF\u3040-\uD7FF]{2,63})|' || v_host || v_name || ')' || v_rest, chr(1), 'gi');
end
$$;

create or replace function autopost.weighted_length(p_text text) returns int
language plpgsql immutable parallel safe
as $$
-- Length in X's weights: a link counts 23, an emoji sequence 2, letters of the smaller alphabets and usual punctuation 1, all else 2.
declare
	v_text text := autopost.mark_links(p_text);
	v_glyph constant text := '[\u203C\u2049\u2122\u2139\u2194-\u21AA\u231A-\u23FF\u24C2\u25AA-\u27BF\u2934\u2935\u2B05-\u2B55\u3030\u303D\u3297\u3299\U0001F000-\U0001FAFF][\uFE0F\U0001F3FB-\U0001F3FF]?';
	v_emoji constant text := '(?:[\u00A9\u00AE]\uFE0F|[0-9#*]\uFE0F?\u20E3|[\U0001F1E6-\U0001F1FF]{2}|\U0001F3F4[\U000E0020-\U000E007E]+\U000E007F|'
		|| v_glyph || '(?:\u200D' || v_glyph || ')*)';
begin
	v_text := regexp_replace(v_text, v_emoji, chr(2), 'g');
	return 22 * (char_length(v_text) - char_length(replace(v_text, chr(1), '')))
		+ 2 * char_length(v_text) - char_length(regexp_replace(replace(v_text, chr(2), U&'\3000'), '[^\u0001-\u10FF\u2000-\u200D\u2010-\u201F\u2032-\u2037]', '', 'g'));
end
$$;
