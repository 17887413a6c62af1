create or replace function autopost.source_keys(p_kind text) returns table (key text, form text, remedy text)
language sql immutable
as $$
-- Purpose: the keys of config_json for a kind of source: name, form (see source_value_fits; a
--          leading "!" means required), remedy.
select v.key, v.form, v.remedy
from (values
	('rss,api,db,filebus', 'interval_seconds', 'count 1 604800', 'write seconds from 1 to 604800, as in 300'),
	('rss,api,db', 'backfill_items', 'count 0 1000', 'write how many items to publish at first sight, 0 to 1000'),
	('rss,api,db', 'tags', 'texts', 'write an array of strings, as in ["news"]'),
	('rss,api,db', 'include', 'texts', 'write an array of keywords and /regular expressions/'),
	('rss,api,db', 'exclude', 'texts', 'write an array of keywords and /regular expressions/'),
	('rss', 'template', 'template title,link,summary,author,categories',
		'write a text with {title}, {link}, {summary}, {author}, {categories}'),
	('api,db', 'template', 'template title,text,link,author,categories',
		'write a text with {title}, {text}, {link}, {author}, {categories}'),
	('rss,api', 'url', '!url', 'write the whole http or https URL'),
	('rss', 'media', 'choice enclosures,none', 'write "enclosures" or "none"'),
	('api', 'items', 'pointer', 'write a JSON pointer to the array of items, as in "/data/items"'),
	('api', 'map', '!pointers id,title,text,link,author,tags,published,media_url,media_type',
		'write {"id": "/id", "text": "/body", …}, each a JSON pointer inside an item'),
	('api', 'paging', 'paging',
		'write {"by": "pointer", "pointer": "/next"}, {"by": "link_header"}, {"by": "page", "parameter": "page"} or {"by": "cursor", "parameter": "after", "pointer": "/next"}, with max_pages of 1 to 100'),
	('api', 'order', 'choice newest_first,oldest_first', 'write "newest_first" or "oldest_first"'),
	('api', 'auth_ref', 'text', 'name a row of credential_bindings; never write the secret itself'),
	('api', 'auth_header', 'header', 'name the header of the credential, as in "X-Api-Key"'),
	('api', 'auth_prefix', 'line', 'write the text before the credential, as in "Bearer "'),
	('db', 'auth_ref', '!text', 'name the row of credential_bindings that holds the DSN'),
	('db', 'query', '!query', 'write one select without a semicolon, with the cursor as $1'),
	('db', 'cursor_column', '!text', 'name the column that the query gives and that only grows'),
	('db', 'map', 'columns id,title,text,link,author,tags,published,media_url,media_type',
		'write {"id": "post_id", "text": "body", …}, each a column of the query'),
	('db', 'timeout_seconds', 'count 1 60', 'write seconds from 1 to 60'),
	('filebus', 'root', '!folder', 'write the absolute path of the folder, as in "/srv/sandbox"'),
	('filebus', 'dist_dir', 'subfolder', 'write a path inside root, as in "dist_artifacts"'),
	('filebus', 'inbox_dir', 'subfolder', 'write a path inside root, as in "inbox"'),
	('filebus', 'channels', '!channels', 'write the channel of each platform, as in {"youtube": "shows"}'),
	('filebus', 'max_bytes', 'count 1 1099511627776', 'write the largest size of an artifact in bytes'),
	('filebus', 'approval_ref', 'text', 'name the credential of platform webhook that signs approvals'),
	('filebus', 'require_signed_approvals', 'boolean', 'write true or false')) v (kinds, key, form, remedy)
where p_kind = any (string_to_array(v.kinds, ','))
$$;

create or replace function autopost.source_value_fits(p_form text, p_value jsonb) returns boolean
language plpgsql immutable
as $$
-- Purpose: true if a value of config_json has its form. p_form is a name and, after a space, its
--          parameter.
declare
	v_text text := p_value #>> '{}';
	v_type text := jsonb_typeof(p_value);
	v_form text := split_part(ltrim(p_form, '!'), ' ', 1);
	v_names text[] := string_to_array(split_part(p_form, ' ', 2), ',');
begin
	return coalesce(case
		when v_form = 'count' then v_type = 'number' and trunc(v_text::numeric) = v_text::numeric
			and v_text::numeric between v_names[1]::numeric and split_part(p_form, ' ', 3)::numeric
		when v_form = 'texts' then v_type = 'array' and not exists (
			select 1 from jsonb_array_elements(p_value) e
				where jsonb_typeof(e.value) <> 'string' or btrim(e.value #>> '{}', E' \t\r\n') = '')
		when v_form in ('pointers', 'columns') then v_type = 'object' and not exists (
			select 1 from jsonb_each(p_value) e where e.key <> all (v_names)
			or not autopost.source_value_fits(case v_form when 'pointers' then 'pointer' else 'text' end, e.value))
		when v_form = 'paging' then autopost.paging_fits(p_value)
		when v_form = 'boolean' then v_type = 'boolean'
		when v_form = 'channels' then v_type = 'object' and p_value <> '{}' and not exists (
			select 1 from jsonb_each(p_value) e where jsonb_typeof(e.value) <> 'string' or e.value = '""')
		when v_type <> 'string' then false
		when v_form = 'url' then v_text ~ '^https?://[^\s/?#]+\S*$' and length(v_text) <= 4096
		when v_form = 'choice' then v_text = any (v_names)
		when v_form = 'pointer' then v_text ~ '^(/([^~]|~[01])*)?$'
		when v_form = 'folder' then v_text ~ '^/[^[:cntrl:]]*$' and length(v_text) <= 2048
		when v_form = 'subfolder' then v_text ~ '^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$'
			and length(v_text) <= 512
		when v_form = 'header' then v_text ~ '^[A-Za-z0-9-]+$'
		when v_form = 'line' then v_text !~ '[\r\n]'
		when v_form = 'query' then v_text ~ '\$1' and v_text !~ ';'
		when v_form = 'template' then btrim(v_text, E' \t\r\n') <> '' and not exists (
			select 1 from regexp_matches(v_text, '\{([A-Za-z_]*)\}', 'g') m where m[1] <> all (v_names))
		else btrim(v_text, E' \t\r\n') <> '' end, false);
end
$$;

create or replace function autopost.paging_fits(p_paging jsonb) returns boolean
language plpgsql immutable
as $$
-- Purpose: true if config_json.paging names one mode and all that the mode needs.
declare
	v_by text := p_paging ->> 'by';
begin
	if jsonb_typeof(p_paging) <> 'object' or v_by is null
		or v_by not in ('pointer', 'link_header', 'page', 'cursor') then
		return false;
	end if;
	return not exists (
			select 1 from jsonb_each(p_paging) e
			where not case e.key
				when 'by' then true
				when 'pointer' then v_by in ('pointer', 'cursor') and autopost.source_value_fits('pointer', e.value)
				when 'parameter' then v_by in ('page', 'cursor') and autopost.source_value_fits('text', e.value)
				when 'first' then v_by = 'page' and autopost.source_value_fits('count 0 1000', e.value)
				when 'max_pages' then autopost.source_value_fits('count 1 100', e.value)
				else false end)
		and (v_by not in ('pointer', 'cursor') or p_paging ? 'pointer')
		and (v_by not in ('page', 'cursor') or p_paging ? 'parameter');
end
$$;

create or replace function autopost.source_faults(p_kind text, p_config jsonb) returns jsonb
language sql immutable
as $$
-- Purpose: checks config_json of a source of this kind.
-- Returns: [{"field", "reason", "remedy"}], ordered by key.
select coalesce(jsonb_agg(jsonb_build_object('field', 'config_json.' || f.key, 'reason', f.reason, 'remedy', f.remedy)
	order by f.key), '[]')
from (
	select c.key, 'is unknown to kind ' || p_kind as reason,
		'remove it, or use one of ' || (select string_agg(k.key, ', ' order by k.key)
			from autopost.source_keys(p_kind) k) as remedy
	from jsonb_object_keys(p_config) c (key)
	where c.key not in (select k.key from autopost.source_keys(p_kind) k)
	union all
	select k.key, case when p_config ? k.key then 'is not of its form' else 'is missing' end, k.remedy
	from autopost.source_keys(p_kind) k
	where case when p_config ? k.key then not autopost.source_value_fits(k.form, p_config -> k.key)
		else k.form like '!%' end
	union all
	select 'approval_ref', 'is missing', 'name the credential of platform webhook that signs approvals'
	where p_kind = 'filebus' and p_config -> 'require_signed_approvals' = 'true' and not p_config ? 'approval_ref') f
$$;
