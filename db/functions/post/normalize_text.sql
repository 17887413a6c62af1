create or replace function autopost.collapse_spaces(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: collapses runs of horizontal space, trims lines, and keeps at most one empty line
--          between paragraphs.
select regexp_replace(regexp_replace(regexp_replace(p_text,
	'[ \t\u00A0\u2000-\u200A\u202F\u205F\u3000]+', ' ', 'g'),
	' ?\n ?', E'\n', 'g'),
	'\n{3,}', E'\n\n', 'g')
$$;

create or replace function autopost.without_controls(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a text without control characters (line break and tab stay), invisible spaces, and the marks
--          that reverse text. Marks of languages from right to left stay.
select regexp_replace(p_text,
	'[\u0001-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u200B\u202D\u202E\uFEFF]', '', 'g')
$$;

create or replace function autopost.normalize_text(p_text text, p_parse_mode text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: a text in NFC with LF line ends, trimmed and with collapsed spaces, without_controls.
--          Code (by the parse_mode) keeps its spaces. Null stays null: it means "not given",
--          and an empty text means "remove".
declare
	v_text text := normalize(p_text, NFC);
	v_code text := case p_parse_mode
		when 'HTML' then '(<pre[^<>]*>(?:(?!</pre>).)*</pre>|<code[^<>]*>(?:(?!</code>).)*</code>)'
		when 'Markdown' then '(```(?:(?!```).)*```|`[^`\n]+`)' end;
	v_out text := '';
	v_part record;
begin
	if p_text is null then
		return null;
	end if;
	v_text := autopost.without_controls(replace(replace(v_text, E'\r\n', E'\n'), E'\r', E'\n'));
	if v_code is null or v_text !~ v_code then
		v_out := autopost.collapse_spaces(v_text);
	else
		for v_part in
			select t.part, false as code, t.n * 2 as place
				from regexp_split_to_table(v_text, v_code) with ordinality t(part, n)
			union all
			select m.match[1], true, m.n * 2 + 1 from regexp_matches(v_text, v_code, 'g') with ordinality m(match, n)
			order by 3
		loop
			v_out := v_out || case when v_part.code then v_part.part else autopost.collapse_spaces(v_part.part) end;
		end loop;
	end if;
	return regexp_replace(btrim(v_out, E' \n\t'), ' +\n', E'\n', 'g');
end
$$;
