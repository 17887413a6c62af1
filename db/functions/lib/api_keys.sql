create or replace function autopost.api_key_of(p_workspace_id text, p_fields jsonb) returns autopost.api_keys
language plpgsql stable
as $$
-- A key as {"name", "role", "scopes", "expires_at"} say it is, the last two optional. Raises AP001 naming the first field that is wrong.
declare
	v_key autopost.api_keys;
	v_field text;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.refuse('fields', 'is no JSON object', 'pass name and role, and scopes and expires_at if you want them');
	end if;
	select f.key into v_field from jsonb_object_keys(p_fields) f (key) where f.key <> all ('{name,role,scopes,expires_at}') limit 1;
	if v_field is not null then
		perform autopost.refuse('fields', format('has the unknown field %L', v_field), 'use name, role, scopes, expires_at');
	end if;
	if coalesce(p_fields ->> 'name', '') !~ '^[[:alnum:]][[:alnum:] ._-]{0,63}$' then
		perform autopost.refuse('fields', 'name is none', 'use 1 to 64 letters, digits, spaces, dots, dashes and underscores, a letter or digit first');
	elsif coalesce(p_fields ->> 'role' not in ('viewer', 'editor', 'approver', 'operator', 'owner'), true) then
		perform autopost.refuse('fields', format('role %s is unknown', coalesce(p_fields ->> 'role', 'null')), 'use viewer, editor, approver, operator or owner');
	elsif jsonb_typeof(coalesce(p_fields -> 'scopes', '[]')) <> 'array' or coalesce(p_fields -> 'scopes', '[]') @? '$[*] ? (!(@ like_regex "^[a-z]+:(read|write)$"))' then
		perform autopost.refuse('fields', 'scopes is no list of scopes', 'write ["posts:write", "channels:read"], or leave it out for all that the role may do');
	elsif jsonb_typeof(coalesce(p_fields -> 'expires_at', 'null')) <> 'null' and autopost.timestamp_of(p_fields ->> 'expires_at') is null then
		perform autopost.refuse('fields', 'expires_at is no time with an offset', 'write 2026-12-01T10:00:00+03:00');
	elsif autopost.timestamp_of(p_fields ->> 'expires_at') <= autopost.now_ts() then
		perform autopost.refuse('fields', 'expires_at is over', 'name a time to come');
	end if;
	v_key.workspace_id := p_workspace_id;
	v_key.name := p_fields ->> 'name';
	v_key.role := p_fields ->> 'role';
	v_key.scopes := array(select distinct s.value from jsonb_array_elements_text(coalesce(p_fields -> 'scopes', '[]')) s order by s.value);
	v_key.expires_at := autopost.timestamp_of(p_fields ->> 'expires_at');
	return v_key;
end
$$;

create or replace function autopost.api_key_shown(p_key autopost.api_keys) returns jsonb
language sql immutable
as $$
-- What a person may see of a key.
select jsonb_build_object('key_id', p_key.key_id, 'name', p_key.name, 'role', p_key.role, 'scopes', p_key.scopes, 'enabled', p_key.enabled,
	'expires_at', p_key.expires_at, 'replaced_by', p_key.replaced_by)
$$;

create or replace function autopost.add_key(p_key autopost.api_keys, p_secret_hash text) returns uuid
language plpgsql
as $$
-- Adds a key under a fresh id, which is returned. Raises AP001 for a hash that is none or in use.
-- Writes: api_keys, secret_lookup.
declare
	v_id uuid := autopost.new_id();
begin
	if coalesce(p_secret_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.refuse('secret_hash', 'is no SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
	insert into autopost.api_keys (workspace_id, key_id, name, role, scopes, secret_hash, expires_at, created_at, updated_at)
	values (p_key.workspace_id, v_id, p_key.name, p_key.role, p_key.scopes, p_secret_hash, p_key.expires_at, autopost.now_ts(), autopost.now_ts());
	return v_id;
exception when unique_violation then
	perform autopost.refuse('secret_hash', 'belongs to a key already', 'make a fresh secret');
	return null;
end
$$;

create or replace function autopost.is_unseen(p_key autopost.api_keys) returns boolean
language sql stable
as $$
-- Whether the key was not noted as used within the hour.
select p_key.last_used_at is null or p_key.last_used_at <= autopost.now_ts() - interval '1 hour'
$$;
