create or replace function autopost.masked_config(p_config jsonb) returns jsonb
language sql immutable
as $$
-- config_json for eyes: secrets masked, and of its url whatever stands where keys and passwords do.
select case when jsonb_typeof(c.masked -> 'url') = 'string' then c.masked || jsonb_build_object('url', regexp_replace(regexp_replace(p_config ->> 'url',
	'://[^/?#@]*@', '://[redacted]@'), '([?&][^=&#]*(?:key|token|auth|sig|pass|secret|code|hash)[^=&#]*=)[^&#]+', '\1[redacted]', 'gi'))
	else c.masked end
from (select autopost.redact(p_config) as masked) c
$$;

create or replace function autopost.source_state(p_workspace_id text, p_source_id text) returns jsonb
language plpgsql stable
as $$
-- What acts change of a source, secrets masked; {} where there is none.
-- Reads: list_sources (view).
begin
	return coalesce((
		select jsonb_strip_nulls(jsonb_build_object('kind', v.kind, 'enabled', v.enabled, 'stopped', v.stopped, 'config_json', autopost.masked_config(v.config_json),
			'endpoint_id', v.endpoint_id))
		from autopost.list_sources v
		where v.workspace_id = p_workspace_id and v.source_id = p_source_id), '{}');
end
$$;

create or replace function autopost.check_source_fields(p_fields jsonb) returns void
language plpgsql stable
as $$
-- Raises AP001 for fields that a source does not have, or of another type.
declare
	v_field record;
	v_type text;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.refuse('fields', 'is no JSON object', 'pass what changes, as in {"enabled": false}');
	end if;
	for v_field in select f.key, jsonb_typeof(f.value) as type from jsonb_each(p_fields) f order by f.key loop
		if v_field.key not in ('kind', 'config_json', 'enabled', 'endpoint_id') then
			perform autopost.refuse('fields', format('has the unknown field %L', v_field.key), 'use kind, config_json, enabled, endpoint_id');
		end if;
		v_type := case v_field.key when 'config_json' then 'object' when 'enabled' then 'boolean' else 'string' end;
		if v_field.type <> v_type then
			perform autopost.refuse('fields', format('%s is no %s', v_field.key, v_type), 'correct it, or leave it out');
		end if;
	end loop;
	if p_fields ? 'kind' and p_fields ->> 'kind' not in ('rss', 'api', 'db', 'filebus') then
		perform autopost.refuse('fields', format('kind %s is unknown', p_fields ->> 'kind'), 'use rss, api, db or filebus');
	end if;
end
$$;

create or replace function autopost.changed_source(p_workspace_id text, p_source_id text, p_old autopost.pull_sources, p_fields jsonb) returns autopost.pull_sources
language plpgsql stable
as $$
-- The source as it will be. Raises AP001 for a new one without a kind.
declare
	v_new autopost.pull_sources := p_old;
begin
	v_new.workspace_id := p_workspace_id;
	v_new.source_id := p_source_id;
	v_new.kind := coalesce(p_fields ->> 'kind', p_old.kind);
	if v_new.kind is null then
		perform autopost.refuse('fields', format('source %s is new and has no kind', p_source_id), 'pass kind: rss, api, db or filebus');
	end if;
	v_new.config_json := (
		select coalesce(jsonb_object_agg(m.key, m.value), '{}')
		from jsonb_each(case when v_new.kind is distinct from p_old.kind then '{}' else p_old.config_json end || coalesce(p_fields -> 'config_json', '{}')) m
		where m.value <> 'null');
	v_new.enabled := coalesce((p_fields -> 'enabled')::boolean, p_old.enabled, true);
	if v_new.enabled then
		v_new.stopped := null;
	end if;
	return v_new;
end
$$;

create or replace function autopost.source_endpoint(p_workspace_id text, p_source_id text, p_endpoint_id text) returns text
language plpgsql stable
as $$
-- The endpoint that a source has, else the one it is to get. Raises AP001 where that name is taken, or the source has another already.
-- Reads: workspace_endpoints.
declare
	v_has text := (
		select e.endpoint_id from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.source_id = p_source_id and e.kind = 'pull_source'
		order by e.enabled desc, e.endpoint_id
		limit 1);
	v_wanted text := coalesce(p_endpoint_id, v_has, p_source_id);
begin
	if v_wanted is distinct from v_has and (v_has is not null or exists (
		select 1 from autopost.workspace_endpoints e where e.workspace_id = p_workspace_id and e.endpoint_id = v_wanted)) then
		perform autopost.refuse('fields', case when v_has is not null then format('the source has the endpoint %s already', v_has)
			else format('there is another endpoint %s', v_wanted) end, 'pass another endpoint_id, or leave it out');
	end if;
	return v_wanted;
end
$$;
