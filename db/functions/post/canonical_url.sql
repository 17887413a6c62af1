create or replace function autopost.canonical_url(p_url text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: the canonical form of a URL: scheme and host in lower case (ASCII only), without default
--          port, fragment and known tracking parameters; an empty path is "/". The other parameters
--          keep their order.
-- Returns: null unless it is an http or https URL without a user name.
declare
	v_part text[] := regexp_match(btrim(p_url, E' \t\r\n'),
		'^([A-Za-z]+)://([^/?#\s@]+)(/[^?#\s]*)?(?:\?([^#\s]*))?(?:#.*)?$');
	v_scheme text;
	v_host text;
	v_query text;
begin
	v_scheme := lower(v_part[1] collate "C");
	if v_scheme is null or v_scheme not in ('http', 'https') then
		return null;
	end if;
	v_host := regexp_replace(lower(v_part[2] collate "C"), case v_scheme when 'http'
		then ':(80)?$' else ':(443)?$' end, '');
	select string_agg(q.part, '&' order by q.n) into v_query
	from regexp_split_to_table(v_part[4], '&') with ordinality q(part, n)
	where q.part <> ''
	and lower(split_part(q.part, '=',
		1) collate "C") !~ '^(utm_[a-z_]+|fbclid|gclid|gclsrc|dclid|yclid|ysclid|msclkid|mc_cid|mc_eid|igshid|twclid|ttclid|_openstat|rb_clickid|wbraid|gbraid)$';
	return v_scheme || '://' || v_host || coalesce(nullif(v_part[3], ''), '/') || coalesce('?' || v_query, '');
end
$$;
