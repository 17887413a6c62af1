create or replace function autopost.url_encode(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a value for a query string. Letters, digits and -._~ stay; every other byte becomes %XX.
select coalesce(string_agg(case when chr(b.code) ~ '[A-Za-z0-9._~-]' and b.code < 128
	then chr(b.code) else '%' || upper(lpad(to_hex(b.code), 2, '0')) end, '' order by b.n), '')
from (
	select n, get_byte(convert_to(p_text, 'UTF8'), n) as code
		from generate_series(0, octet_length(convert_to(p_text, 'UTF8')) - 1) n
) b
$$;

create or replace function autopost.url_with_params(p_url text, p_params jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: adds parameters to the query of an http or https URL. Existing ones win. Any other URL
--          stays.
declare
	v_part text[] := regexp_match(p_url, '^(https?://[^?#]*)(\?[^#]*)?(#.*)?$', 'i');
	v_new text;
begin
	select string_agg(p.key || '=' || autopost.url_encode(p.value), '&' order by p.key) into v_new
	from jsonb_each_text(p_params) p
	where coalesce(v_part[2], '') !~ ('[?&]' || p.key || '(=|&|$)');
	if v_part is null or v_new is null then
		return p_url;
	end if;
	return v_part[1] || case when coalesce(v_part[2], '?') = '?'
		then '?' else v_part[2] || '&' end || v_new || coalesce(v_part[3], '');
end
$$;

create or replace function autopost.links_with_params(p_text text, p_html boolean, p_params jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: adds parameters to all links of a rendered text, in tags and in plain text. Code stays
--          as it is.
declare
	v_token text;
	v_url text;
	v_code int := 0;
	v_out text := '';
begin
	for v_token in
		select m[1] from regexp_matches(p_text, case when p_html
			then '(<[^<>]*>|https?://(?:[^\s<>"&]|&amp;)+|[^<h]+|h|<)' else '(https?://[^\s<>"]+|[^h]+|h)' end, 'gi') m
	loop
		if p_html and v_token ~ '^<a href="' then
			v_token := '<a href="' || replace(autopost.html_escape(autopost.url_with_params(
				autopost.html_unescape(substr(v_token, 10, char_length(v_token) - 11)), p_params)), '"',
					'&quot;') || '">';
		elsif p_html and v_token ~ '^</?(pre|code)\y' then
			v_code := v_code + case when left(v_token, 2) = '</' then -1 else 1 end;
		elsif v_code = 0 and v_token ~* '^https?://' then
			v_url := autopost.without_punctuation(v_token);
			v_token := case when p_html then autopost.html_escape(
				autopost.url_with_params(autopost.html_unescape(v_url), p_params))
				else autopost.url_with_params(v_url, p_params) end || substr(v_token, char_length(v_url) + 1);
		end if;
		v_out := v_out || v_token;
	end loop;
	return v_out;
end
$$;

create or replace function autopost.buttons_with_params(p_buttons jsonb, p_params jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: adds parameters to the links of buttons.
select jsonb_agg((
	select jsonb_agg(b.value || jsonb_build_object('url', autopost.url_with_params(b.value ->> 'url', p_params))
		order by b.ordinality)
	from jsonb_array_elements(r.value) with ordinality b) order by r.ordinality)
from jsonb_array_elements(p_buttons) with ordinality r
$$;
