create or replace function autopost.url_in_text() returns text
language sql immutable parallel safe
as $$
-- Purpose: the regular expression of a URL in a text, with punctuation that may follow it.
select 'https?://[^\s<>"]+'::text
$$;

create or replace function autopost.without_punctuation(p_url text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a match of url_in_text without the punctuation that follows the URL.
select regexp_replace(p_url, '[.,:;!?''")\]»”’…]+$', '')
$$;

create or replace function autopost.same_url(p_one text, p_other text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if two URLs have the same canonical form. A final slash does not count.
select rtrim(coalesce(autopost.canonical_url(p_one), p_one), '/')
	= rtrim(coalesce(autopost.canonical_url(p_other), p_other), '/')
$$;

create or replace function autopost.text_has_link(p_text text, p_link text) returns boolean
language plpgsql immutable parallel safe
as $$
-- Purpose: true if a text holds a link as a whole URL. A longer URL that begins with the link is another one.
begin
	return p_text ~* autopost.url_in_text() and exists (
		select 1 from regexp_matches(p_text, autopost.url_in_text(), 'gi') m
		where autopost.same_url(autopost.html_unescape(autopost.without_punctuation(m[1])), p_link));
end
$$;

create or replace function autopost.links_to_add(p_text text, p_link text, p_links jsonb) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: the link of a post and its further links, in order, without those that the text holds and without
--          repeats. They become the last paragraph, one line each.
declare
	v_added text[] := '{}';
	v_earlier text[] := '{}';
	v_url text;
begin
	foreach v_url in array p_link || array(select jsonb_array_elements_text(p_links)) loop
		continue when coalesce(v_url, '') = '';
		if not autopost.text_has_link(p_text, v_url)
			and not exists (select 1 from unnest(v_earlier) u (url) where autopost.same_url(u.url, v_url))
		then
			v_added := v_added || v_url;
		end if;
		v_earlier := v_earlier || v_url;
	end loop;
	return v_added;
end
$$;

create or replace function autopost.with_canonical_links(p_text text, p_links text[]) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: a text in which each URL that equals one of the given canonical links has its canonical form. Posts that
--          differ in tracking parameters alone become equal. Other URLs stay as written.
begin
	if p_links = '{}' or p_text is null or p_text !~* autopost.url_in_text() then
		return p_text;
	end if;
	return (
		select string_agg(p.part || coalesce(case when u.link = any (p_links) then
				case when strpos(u.url, '&amp;') > 0 then autopost.html_escape(u.link) else u.link end
				|| substr(u.match, char_length(u.url) + 1)
			else u.match end, ''), '' order by p.n)
		from regexp_split_to_table(p_text, autopost.url_in_text(), 'i') with ordinality p (part, n)
		left join (
			select m.n, m.match[1] as match, t.url, autopost.canonical_url(autopost.html_unescape(t.url)) as link
			from regexp_matches(p_text, autopost.url_in_text(), 'gi') with ordinality m (match, n)
			cross join lateral (select autopost.without_punctuation(m.match[1]) as url) t) u using (n));
end
$$;
