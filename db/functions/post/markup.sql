create or replace function autopost.tag_in_dialect(p_tag text, p_attributes text, p_dialect text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: an opening tag of our HTML in a platform's dialect.
-- Returns: the tag with its attributes; '' if the dialect lacks it, or if it mentions a person (the text
--          stays); null if it is not allowed in our HTML.
declare
	v_tag text := case p_tag when 'strong' then 'b' when 'em' then 'i' when 'ins' then 'u' when 'strike' then 's'
		when 'del' then 's' else p_tag end;
	v_href text;
begin
	if v_tag = 'span' then
		if p_attributes !~* '^class\s*=\s*["'']?tg-spoiler["'']?$' then
			return null;
		end if;
		v_tag := 'tg-spoiler';
	end if;
	if v_tag = 'a' then
		v_href := autopost.without_controls(autopost.html_unescape(coalesce(
			(regexp_match(p_attributes, '(?:^|\s)href\s*=\s*(?:"([^"]*)"|''([^'']*)'')', 'i'))[1],
			(regexp_match(p_attributes, '(?:^|\s)href\s*=\s*''([^'']*)''', 'i'))[1], '')));
		if v_href ~* '^(tg|max)://+user' then
			return '';
		end if;
		if v_href !~* '^(https?://[^\s]+|tg://|mailto:|tel:|max://)' then
			return null;
		end if;
		return format('<a href="%s">', replace(autopost.html_escape(v_href), '"', '&quot;'));
	end if;
	if v_tag in ('b', 'i', 'u', 's', 'pre') then
		return '<' || v_tag || '>';
	elsif v_tag = 'code' then
		return case when p_dialect = 'telegram_html' and p_attributes ~* '^class\s*=\s*"language-[\w+-]{1,30}"$'
			then format('<code %s>', p_attributes) else '<code>' end;
	elsif v_tag = 'blockquote' then
		return case when p_dialect <> 'telegram_html' then '' when p_attributes ~* '^expandable$'
			then '<blockquote expandable>' else '<blockquote>' end;
	elsif v_tag = 'tg-spoiler' then
		return case p_dialect when 'telegram_html' then '<tg-spoiler>' else '' end;
	elsif v_tag = 'tg-emoji' then
		return case when p_dialect <> 'telegram_html' then '' when p_attributes ~ '^emoji-id="\d+"$'
			then format('<tg-emoji %s>', p_attributes) end;
	elsif v_tag = 'h1' then
		return case p_dialect when 'max_html' then '<h1>' else '<b>' end;
	elsif v_tag = 'mark' then
		return case p_dialect when 'max_html' then '<mark>' else '' end;
	end if;
	return null;
end
$$;

create or replace function autopost.html_in_dialect(p_html text, p_dialect text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: our HTML in a platform's dialect.
-- Returns: {"text", "plain"} (plain: the visible part), or {"error"} with the name of the tag.
declare
	v_token text;
	v_tag text[];
	v_name text;
	v_open text;
	v_stack text[] := '{}';  -- names as written
	v_closers text[] := '{}'; -- closing tags in the dialect
	v_text text := '';
	v_plain text := '';
	v_words text;
begin
	for v_token in select m[1] from regexp_matches(p_html, '(<[^<>]*>|[^<]+|<)', 'g') m loop
		if left(v_token, 1) <> '<' then
			v_words := autopost.without_controls(autopost.html_unescape(v_token));
			v_plain := v_plain || v_words;
			v_text := v_text || autopost.html_escape(v_words);
			continue;
		end if;
		v_tag := regexp_match(v_token, '^<(/?)([A-Za-z][A-Za-z0-9-]*)(?:\s+([^>]*?))?\s*>$');
		if v_tag is null then
			return jsonb_build_object('error', 'a "<" that starts no tag; write it as &lt;');
		end if;
		v_name := lower(v_tag[2] collate "C");
		if v_tag[1] = '/' then
			if v_stack[1] is distinct from v_name then
				return jsonb_build_object('error',
					format('unmatched end tag </%s>%s', v_name, coalesce(', expected </' || v_stack[1] || '>', '')));
			end if;
			v_text := v_text || v_closers[1];
			v_stack := v_stack[2:];
			v_closers := v_closers[2:];
			continue;
		end if;
		v_open := autopost.tag_in_dialect(v_name, coalesce(v_tag[3], ''), p_dialect);
		if v_open is null then
			return jsonb_build_object('error', format('unsupported tag %s', left(v_token, 60)));
		end if;
		if cardinality(v_stack) = 64 then
			return jsonb_build_object('error', 'tags stand more than 64 deep in each other');
		end if;
		v_text := v_text || v_open;
		v_stack := v_name || v_stack;
		v_closers := coalesce('</' || (regexp_match(v_open, '^<([a-z0-9-]+)'))[1] || '>', '') || v_closers;
	end loop;
	if cardinality(v_stack) > 0 then
		return jsonb_build_object('error', format('unclosed tag <%s>', v_stack[1]));
	end if;
	return jsonb_build_object('text', v_text, 'plain', v_plain);
end
$$;

create or replace function autopost.markdown_to_html(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: CommonMark's inline set as our HTML: **bold**, *italic*, _italic_, ~~strike~~, `code`,
--          fenced code, [text](url), > quotes, \escapes. HTML in it is text. Delimiters without a
--          pair stay. Finished pieces are kept in v_kept and appear in the text as U+E000 number
--          U+E001.
declare
	-- letters do not depend on the locale of the database
	v_text text collate "und-x-icu" := translate(p_text, U&'\E000\E001', '');
	v_kept text[] collate "und-x-icu" := '{}';
	v_match text[] collate "und-x-icu";
	v_inner constant text collate "und-x-icu" := '((?:[^*_~<]|<[a-z][^<>]*>[^<]*</[a-z]+>|(?<=\w)_(?=\w))+)';
begin
	loop
		v_match := regexp_match(v_text, '(```(?:[a-z]*\n)?((?:(?!```).)*)```|`([^`\n]+)`|\\([!-/:-@\[-`{-~]))');
		exit when v_match is null;
		v_kept := v_kept || case
			when v_match[2] is not null then '<pre>' || autopost.html_escape(btrim(v_match[2], E'\n')) || '</pre>'
			when v_match[3] is not null then '<code>' || autopost.html_escape(v_match[3]) || '</code>'
			else autopost.html_escape(v_match[4]) end;
		v_text := overlay(v_text placing chr(57344) || cardinality(v_kept) || chr(57345)
			from strpos(v_text, v_match[1]) for length(v_match[1]));
	end loop;
	v_text := autopost.html_escape(v_text);
	loop
		v_match := regexp_match(v_text, '(\[([^\[\]\n]+)\]\(([^()\s]+)\))');
		exit when v_match is null;
		v_kept := v_kept || array['<a href="' || replace(v_match[3], '"', '&quot;') || '">'];
		v_text := replace(v_text, v_match[1], chr(57344) || cardinality(v_kept) || chr(57345) || v_match[2]
			|| chr(57344) || '0' || chr(57345));
	end loop;
	v_text := regexp_replace(v_text, '~~(?=\S)' || v_inner || '(?<=\S)~~', '<s>\1</s>', 'g');
	v_text := regexp_replace(v_text, '\*\*(?=\S)' || v_inner || '(?<=\S)\*\*', '<b>\1</b>', 'g');
	v_text := regexp_replace(v_text, '\*(?=\S)' || v_inner || '(?<=\S)\*', '<i>\1</i>', 'g');
	v_text := regexp_replace(v_text, '(?<!\w)_(?=\S)' || v_inner || '(?<=\S)_(?!\w)', '<i>\1</i>', 'g');
	v_text := regexp_replace(v_text, '\*\*(?=\S)' || v_inner || '(?<=\S)\*\*', '<b>\1</b>', 'g');
	v_text := regexp_replace(regexp_replace(v_text, '(^|\n)&gt; ?([^\n]*)', '\1<blockquote>\2</blockquote>', 'g'),
		'</blockquote>\n<blockquote>', E'\n', 'g');
	for v_at in reverse cardinality(v_kept)..1 loop
		v_text := replace(v_text, chr(57344) || v_at || chr(57345), v_kept[v_at]);
	end loop;
	return replace(v_text, chr(57344) || '0' || chr(57345), '</a>');
end
$$;
