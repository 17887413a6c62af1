create or replace function autopost.measure(p_text text, p_unit text) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: the length of a text in a platform's unit: weighted, bytes, or else UTF-16 code units.
begin
	return case p_unit when 'weighted' then autopost.weighted_length(p_text) when 'bytes'
		then octet_length(convert_to(p_text, 'UTF8')) else autopost.utf16_length(p_text) end;
end
$$;

create or replace function autopost.visible_text(p_text text, p_html boolean) returns text
language sql immutable parallel safe
as $$
-- Purpose: the visible part of a text in an HTML dialect, or of a plain text.
select case when p_html then autopost.html_unescape(regexp_replace(p_text, '<[^<>]*>', '', 'g')) else p_text end
$$;

create or replace function autopost.length_in(p_text text, p_html boolean, p_unit text) returns int
language sql immutable parallel safe
as $$
-- Purpose: the length of a rendered text as the platform counts it. In the unit markup tags count
--          too.
select autopost.measure(case p_unit when 'markup' then p_text else autopost.visible_text(p_text, p_html) end, p_unit)
$$;

create or replace function autopost.grapheme_floor(p_text text, p_at int) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: the last position up to p_at that does not split a letter and its marks, an emoji or a
--          flag.
declare
	v_at int := p_at;
	v_joined constant text
		:= '[\u0300-\u036F\u0483-\u0489\u0591-\u05BD\u05BF-\u05C7\u0610-\u061A\u064B-\u065F\u0670\u06D6-\u06ED\u0900-\u0903\u093A-\u094F\u0962\u0963'
		|| '\u0981-\u0983\u09BC-\u09CD\u0A3C-\u0A4D\u0ABC-\u0ACD\u0B3C-\u0B4D\u0BBE-\u0BCD\u0C3E-\u0C4D\u0CBC-\u0CCD\u0D3B-\u0D4D\u0E31\u0E34-\u0E3A\u0E47-\u0E4E'
		|| '\u1160-\u11FF\u1AB0-\u1AFF\u1DC0-\u1DFF\u200C\u200D\u20D0-\u20FF\u302A-\u302F\u3099\u309A\uFE00-\uFE0F\uFE20-\uFE2F'
		|| '\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F\U000E0100-\U000E01EF]';
begin
	while v_at > 0 and v_at < char_length(p_text) and (
		substr(p_text, v_at + 1, 1) ~ v_joined
		or substr(p_text, v_at, 1) = U&'\200D'
		or (substr(p_text, v_at + 1, 1) ~ '[\U0001F1E6-\U0001F1FF]'
			and char_length(substring(left(p_text, v_at) from '[\U0001F1E6-\U0001F1FF]*$')) % 2 = 1))
	loop
		v_at := v_at - 1;
	end loop;
	return case when v_at = 0 then p_at else v_at end;
end
$$;

create or replace function autopost.cut_place(p_text text, p_max int, p_words_only boolean) returns int[]
language plpgsql immutable parallel safe
as $$
-- Purpose: where to cut a visible text after at most p_max characters: after a paragraph, line,
--          sentence or word, the first of these that leaves at least half; else between letters,
--          but never inside a link.
-- Returns: the end of the first part and the end of the gap after it.
declare
	v_window text := left(p_text, p_max + 1);
	v_break text;
	v_at int;
	v_word int := coalesce(char_length(substring(v_window from '^(.*\S)\s')), 0);
begin
	if char_length(p_text) <= p_max then
		return array[char_length(p_text), char_length(p_text)];
	end if;
	foreach v_break in array case when p_words_only
		then '{}' else array['^(.*\S)\s*\n\s*\n', '^(.*\S)\s*\n', '^(.*[.!?…。！？]["''»”’)\]]*)\s'] end loop
		v_at := char_length(substring(v_window from v_break));
		exit when v_at * 2 >= p_max;
		v_at := null;
	end loop;
	v_at := coalesce(v_at, case when v_word * 2 >= p_max
		or (v_word > 0 and substr(p_text, v_word + 1) ~* '^\s+[("«]?https?://') then v_word
		else autopost.grapheme_floor(p_text, p_max) end);
	return array[v_at, v_at + char_length(substring(substr(p_text, v_at + 1) from '^\s*'))];
end
$$;

create or replace function autopost.cut_markup(p_text text, p_at int, p_html boolean) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: splits a rendered text after p_at visible characters. Open tags are closed before the
--          cut and opened again after it.
declare
	v_token text;
	v_words text;
	v_open text[] := '{}';
	v_head text := '';
	v_read int := 0;
	v_left int := p_at;
begin
	if not p_html then
		return array[left(p_text, p_at), substr(p_text, p_at + 1)];
	end if;
	for v_token in select m[1] from regexp_matches(p_text, '(<[^<>]*>|[^<]+)', 'g') m loop
		v_read := v_read + char_length(v_token);
		v_words := case when left(v_token, 1) <> '<' then autopost.html_unescape(v_token) end;
		if left(v_token, 2) = '</' then
			v_head := v_head || v_token;
			v_open := trim_array(v_open, 1);
		elsif v_left > 0 and coalesce(char_length(v_words), 0) <= v_left then
			v_head := v_head || v_token;
			v_open := v_open || case when v_words is null then array[v_token] else '{}' end;
			v_left := v_left - coalesce(char_length(v_words), 0);
		else
			return array[
				v_head || autopost.html_escape(left(coalesce(v_words, ''), v_left))
					|| coalesce((select string_agg('</' || (regexp_match(o.tag, '^<([a-z0-9-]+)'))[1] || '>', ''
						order by o.n desc) from unnest(v_open) with ordinality o (tag, n)), ''),
				array_to_string(v_open, '') || coalesce(autopost.html_escape(substr(v_words, v_left + 1)),
					v_token) || substr(p_text, v_read + 1)];
		end if;
	end loop;
	return array[v_head, ''];
end
$$;

create or replace function autopost.fitting_markup(p_text text, p_limit int) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: fitting_length where tags count too, including those that a cut must close.
declare
	v_token text;
	v_words text;
	v_used int := 0;
	v_closers int[] := '{}'; -- lengths of the closing tags, outermost first
	v_closing int := 0; -- their sum
	v_seen int := 0;
	v_fits int := 0;
begin
	for v_token in select m[1] from regexp_matches(p_text, '(<[^<>]*>|[^<]+)', 'g') m loop
		v_used := v_used + autopost.utf16_length(v_token);
		if left(v_token, 2) = '</' then
			v_closing := v_closing - v_closers[cardinality(v_closers)];
			v_closers := trim_array(v_closers, 1);
		elsif left(v_token, 1) = '<' then
			v_closers := v_closers || char_length(substring(v_token from '^<([a-z0-9-]+)')) + 3;
			v_closing := v_closing + v_closers[cardinality(v_closers)];
		else
			v_words := autopost.html_unescape(v_token);
			if v_used + v_closing <= p_limit then
				v_seen := v_seen + char_length(v_words);
				v_fits := v_seen;
				continue;
			end if;
			v_used := v_used - autopost.utf16_length(v_token) + v_closing;
			return greatest(v_fits, v_seen + (
				select count(*) from (
					select sum(autopost.utf16_length(autopost.html_escape(w.letter))) over (order by w.n) as spent
					from regexp_split_to_table(left(v_words, greatest(p_limit - v_used, 0)),
						'') with ordinality w (letter, n)) l
				where v_used + l.spent <= p_limit and l.spent > 0));
		end if;
	end loop;
	return v_fits;
end
$$;

create or replace function autopost.fitting_length(p_text text, p_html boolean, p_limit int, p_unit text) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: how many visible characters of a rendered text fit a limit. A character costs at least
--          one unit, except in links on X: there up to eight characters per unit are checked.
declare
	v_plain text := autopost.visible_text(p_text, p_html);
	v_low int := 0;
	v_high int := least(char_length(v_plain), case p_unit when 'weighted' then 8 else 1 end * greatest(p_limit, 0));
	v_middle int := v_high;
begin
	if p_unit = 'markup' and p_html then
		return autopost.fitting_markup(p_text, p_limit);
	end if;
	while v_low < v_high loop
		if autopost.measure(left(v_plain, v_middle), p_unit) <= p_limit then
			v_low := v_middle;
		else
			v_high := v_middle - 1;
		end if;
		v_middle := (v_low + v_high + 1) / 2;
	end loop;
	return v_low;
end
$$;

create or replace function autopost.shorten_text(p_text text, p_html boolean, p_limit int, p_unit text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: a rendered text cut to a limit, after a word if possible, with an ellipsis. A text that
--          fits stays.
declare
	v_at int;
begin
	if autopost.length_in(p_text, p_html, p_unit) <= p_limit then
		return p_text;
	end if;
	v_at := autopost.fitting_length(p_text, p_html, p_limit - autopost.measure('…', p_unit), p_unit);
	v_at := case when v_at > 0 then (autopost.cut_place(autopost.visible_text(p_text, p_html), v_at, true))[1] else 0
		end;
	return regexp_replace((autopost.cut_markup(p_text, v_at, p_html))[1], '((?:</[a-z0-9-]+>)*)$', '…\1');
end
$$;

create or replace function autopost.split_text(p_text text, p_html boolean, p_first int, p_limit int,
	p_unit text) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: splits a rendered text into parts, cut after paragraphs, lines, sentences or words. The
--          first part fits p_first, the others p_limit.
declare
	v_rest text := p_text;
	v_window text; -- the part of the rest that affects the cut
	v_beyond text;
	v_plain text;
	v_parts text[] := '{}';
	v_limit int := p_first;
	v_place int[];
begin
	loop
		v_window := left(v_rest, case p_unit when 'markup' then 2 else 8 end * v_limit + 4096);
		v_window := case when v_window = v_rest then v_rest else regexp_replace(v_window, '<[^<>]*$', '') end;
		v_plain := autopost.visible_text(v_window, p_html);
		exit when v_window = v_rest and (v_plain = '' or autopost.length_in(v_rest, p_html, p_unit) <= v_limit);
		v_place := case when v_plain = '' then '{1,1}' -- only tags so far
			else autopost.cut_place(v_plain, greatest(autopost.fitting_length(v_window, p_html, v_limit, p_unit), 1),
				false) end;
		if v_place[2] >= char_length(v_plain) then
			v_window := v_rest; -- the cut needs the open tags
		end if;
		v_beyond := substr(v_rest, char_length(v_window) + 1);
		v_parts := v_parts || (autopost.cut_markup(v_window, v_place[1], p_html))[1];
		v_rest := (autopost.cut_markup(v_window, v_place[2], p_html))[2] || v_beyond;
		v_limit := p_limit;
	end loop;
	return v_parts || case when v_plain <> '' or v_parts = '{}' then array[v_rest] else '{}' end;
end
$$;
