create or replace function autopost.redact(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: masks secrets and personal data in a text: bot tokens, bearer and basic credentials,
--          key=value secrets, upload addresses, e-mail addresses, phone numbers
--          (international, and domestic as written in Russia and the USA).
begin
	return (
		select regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(p_text,
			'\d{6,12}:[A-Za-z0-9_-]{30,}', '[redacted]', 'g'), -- also after "bot" in a URL
			'\m(authorization["'']?\s*[=:]\s*["'']?)(?:(?:bearer|basic)\s+)?[^\s"'',]{6,}', '\1[redacted]', 'gi'),
			'\m(bearer|basic)\s+[^\s",]{6,}', '\1 [redacted]', 'gi'),
			'\m((?:\w*_)?(?:access|refresh|client)?(?:token|secret|password)|(?:\w*_)?api_?key|upload_id)(["'']?\s*[=:]\s*["'']?)[^\s"'',&}]{4,}', '\1\2[redacted]', 'gi'),
			'\m[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}', '[redacted]', 'g'),
			'(^|[^\w-])(?:\+\d[\d ()-]{8,16}\d|8[ (-]{1,2}\d{3}[) -]{1,2}\d{3}[ -]?\d{2}[ -]?\d{2}|89\d{9}|\(\d{3,5}\) ?\d{2,3}[ -]\d{2}[ -]?\d{2})(?![\w-])',
			'\1[redacted]', 'g'));
end
$$;

create or replace function autopost.redact_deep(p_value jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: redact for every string of a JSON value, and for every value under a key that names a
--          secret. Keys stay.
begin
	-- Branches, not one expression: its plan for a string would also hold the queries of the others.
	case jsonb_typeof(p_value)
		when 'string' then
			return to_jsonb(autopost.redact(p_value #>> '{}'));
		when 'array' then
			return (select coalesce(jsonb_agg(autopost.redact_deep(e.value) order by e.ordinality), '[]')
				from jsonb_array_elements(p_value) with ordinality e);
		when 'object' then
			return (select coalesce(jsonb_object_agg(o.key, case
				when o.key ~* '(token|secret|password|authorization)$' and o.key <> 'claim_token'
					and jsonb_typeof(o.value) = 'string' then to_jsonb('[redacted]'::text)
				else autopost.redact_deep(o.value) end), '{}')
				from jsonb_each(p_value) o);
		else
			return p_value;
	end case;
end
$$;

create or replace function autopost.redact(p_value jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: redact_deep if the JSON text contains anything to mask. Most events do not, and the
--          check is cheaper. A phone number follows no letter, digit or dash, unlike a part of a UUID;
--          JSON writes a line feed before it as an escape.
begin
	if lower(p_value::text collate "C") like any (
		'{%token%,%secret%,%password%,%authorization%,%api_key%,%apikey%,%upload_id%,%bearer%,%basic%,%@%}')
		or p_value::text ~ '\+\d[\d ()-]{8}|\d{6}:[A-Za-z0-9_-]{30}|\(\d{3,5}\) ?\d|(?:^|[^\w-]|\\[bfnrt]|\\u[0-9a-f]{4})(?:8[ (-]{1,2}\d{3}|89\d{9})' then
		return autopost.redact_deep(p_value);
	end if;
	return p_value;
end
$$;

create or replace function autopost.longest_wait_ms() returns numeric
language sql immutable parallel safe
as $$
-- Purpose: the longest wait that a platform may state, in milliseconds: 366 days. Instants such as
-- X's reset_date are weeks away.
select 31622400000::numeric
$$;

create or replace function autopost.ignored_fields(p_error jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the fields of an error that are invalid and therefore ignored, as {field: text}; null if
--          all are valid.
begin
	return (
		select nullif(jsonb_strip_nulls(jsonb_build_object(
			'category', case when p_error ->> 'category' not in ('TRANSIENT', 'PERMANENT')
				then left(p_error ->> 'category', 100) end,
			'scope', case when p_error ->> 'scope' not in ('delivery', 'channel', 'platform')
				then left(p_error ->> 'scope', 100) end,
			'known', case when jsonb_typeof(p_error -> 'known') not in ('boolean', 'null')
				then left(p_error ->> 'known', 100) end,
			'retry_after_ms', case when jsonb_typeof(p_error -> 'retry_after_ms') <> 'number'
				or (p_error ->> 'retry_after_ms')::numeric not between 0 and autopost.longest_wait_ms()
					then left(p_error ->> 'retry_after_ms', 100) end)), '{}'));
end
$$;

create or replace function autopost.is_known(p_error jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if an error proves that the call had no effect. A bare timeout does not.
select case p_error ->> 'known' when 'true' then true when 'false' then false
	else coalesce(p_error ->> 'category', '') = 'PERMANENT' or coalesce(p_error ->> 'code', '') <> 'timeout' end
$$;

create or replace function autopost.normalised_error(p_error jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the fields of the error contract with defaults, redacted, the raw answer cut to 512
--          characters. Invalid fields are listed under misread. A wait is at most longest_wait_ms.
begin
	return (
		select jsonb_strip_nulls(jsonb_build_object(
			'category', case when p_error ->> 'category' = 'PERMANENT' then 'PERMANENT' else 'TRANSIENT' end,
			'scope', case when p_error ->> 'scope' in ('channel', 'platform') then p_error ->> 'scope' else 'delivery' end,
			'code', left(coalesce(nullif(p_error ->> 'code', ''), 'unspecified'), 100),
			'known', autopost.is_known(p_error),
			'retry_after_ms', case when jsonb_typeof(p_error -> 'retry_after_ms') = 'number'
				and p_error ->> 'retry_after_ms' !~ '^-'
				then least((p_error ->> 'retry_after_ms')::numeric, autopost.longest_wait_ms()) end,
			'moved', case when p_error ->> 'scope' = 'channel' and p_error #>> '{moved,from}' <> ''
				and p_error #>> '{moved,to}' <> '' then jsonb_build_object('from', p_error #>> '{moved,from}',
				'to', p_error #>> '{moved,to}') end,
			'message', left(autopost.redact(p_error ->> 'message'), 500),
			'raw', left(autopost.redact((p_error -> 'raw')::text), 512),
			'misread', autopost.redact(autopost.ignored_fields(p_error)))));
end
$$;
