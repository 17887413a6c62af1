create or replace function autopost.masked_config(p_config jsonb) returns jsonb
language sql immutable
as $$
-- Purpose: config_json for display, with masked secrets and a url without keys and passwords.
select case when jsonb_typeof(c.masked -> 'url') = 'string'
	then c.masked || jsonb_build_object('url', regexp_replace(regexp_replace(p_config ->> 'url',
	'://[^/?#@]*@', '://[redacted]@'), '([?&][^=&#]*(?:key|token|auth|sig|pass|secret|code|hash)[^=&#]*=)[^&#]+',
		'\1[redacted]', 'gi'))
	else c.masked end
from (select autopost.redact(p_config) as masked) c
$$;

create or replace function autopost.source_rules(p_source_id text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of a source. The default id of its endpoint is its own id.
select '{
	"kind": {"is": "text", "required": true, "in": ["rss", "api", "db", "filebus"]},
	"config_json": {"is": "object", "default": {}},
	"enabled": {"is": "boolean", "default": true}}'::jsonb
	|| jsonb_build_object('endpoint_id', jsonb_build_object('is', 'text', 'required', true, 'default', p_source_id))
$$;

create or replace function autopost.source_fields(p_source autopost.pull_sources) returns jsonb
language plpgsql stable
as $$
-- Purpose: the fields of a stored source; null without a source. endpoint_id is null without an
--          endpoint.
-- Reads:   list_sources (view).
begin
	return case when p_source.source_id is not null then
		jsonb_build_object('kind', p_source.kind, 'config_json', p_source.config_json, 'enabled', p_source.enabled,
			'endpoint_id', (
			select v.endpoint_id from autopost.list_sources_rows v
				where v.workspace_id = p_source.workspace_id and v.source_id = p_source.source_id)) end;
end
$$;

create or replace function autopost.source_fields_to_put(p_source_id text, p_before jsonb, p_fields jsonb) returns jsonb
language sql immutable
as $$
-- Purpose: p_fields with the complete resulting config_json: merged by key, null removes a key;
--          another kind starts empty. A source without an endpoint gets one.
select case when jsonb_typeof(p_fields) <> 'object' then p_fields
	else case when p_before ->> 'endpoint_id' is null then jsonb_build_object('endpoint_id', p_source_id)
		else '{}' end || p_fields
	|| case
		when jsonb_typeof(p_fields -> 'config_json') = 'object' or n.other
			and not p_fields ? 'config_json' then jsonb_build_object('config_json', (
			select coalesce(jsonb_object_agg(m.key, m.value), '{}')
			from jsonb_each(case when n.other then '{}'
				else coalesce(p_before -> 'config_json', '{}') end || coalesce(p_fields -> 'config_json', '{}')) m
			where m.value <> 'null'))
		else '{}' end end
from (select p_fields ? 'kind' and p_fields -> 'kind' is distinct from p_before -> 'kind' as other) n
$$;

create or replace function autopost.source_channel_errors(p_workspace_id text, p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the channels of a folder that do not exist on their platform, as {field, reason, remedy}.
-- Reads:   channels.
begin
	if p_after ->> 'kind' <> 'filebus' or coalesce(jsonb_typeof(p_after #> '{config_json,channels}') <> 'object',
		true) then
		return '[]';
	end if;
	return (
		select coalesce(jsonb_agg(autopost.field_error('config_json.channels.' || e.key,
			format('must be a channel of platform %s, got %s', e.key, e.value), 'run autopost channel list') -> 0
			order by e.key), '[]')
		from jsonb_each_text(p_after #> '{config_json,channels}') e
		where not exists (select 1 from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = e.value and c.platform = e.key));
end
$$;

create or replace function autopost.source_errors(p_workspace_id text, p_before jsonb, p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a source and its endpoint.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   workspace_endpoints, credential_bindings.
declare
	v_has text := p_before ->> 'endpoint_id';
	v_wanted text := p_after ->> 'endpoint_id';
begin
	-- A faulty source can still be disabled.
	return case when p_after -> 'enabled' = 'true' then autopost.source_faults(p_after ->> 'kind',
		p_after -> 'config_json') || autopost.source_host_errors(p_workspace_id, p_after)
		|| autopost.source_channel_errors(p_workspace_id, p_after) else '[]' end
	|| case
		when v_has <> v_wanted
			then autopost.field_error('endpoint_id', format('%s is not its endpoint, which stays', v_wanted),
				format('write %s', v_has))
		when v_has is null and exists (select 1 from autopost.workspace_endpoints e
			where e.workspace_id = p_workspace_id and e.endpoint_id = v_wanted)
			then autopost.field_error('endpoint_id', format('%s is there already', v_wanted),
				'write an id that is free')
		else '[]' end;
end
$$;

create or replace function autopost.masked_fields(p_fields jsonb) returns jsonb
language sql immutable
as $$
-- Purpose: the fields of a source for display.
select p_fields || case when p_fields ? 'config_json' then jsonb_build_object('config_json',
	autopost.masked_config(p_fields -> 'config_json')) else '{}' end
$$;
