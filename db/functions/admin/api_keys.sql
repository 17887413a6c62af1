create or replace function autopost.api_key_of(p_workspace_id text, p_fields jsonb) returns autopost.api_keys
language plpgsql stable
as $$
-- Purpose: reads an API key from {"name", "role", "scopes", "expires_at"}; scopes and expires_at
--          are optional.
-- Raises:  AP001 with the first wrong field.
declare
	v_key autopost.api_keys;
	v_field text;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.raise_argument('fields', 'must be a JSON object',
			'pass name and role, and optionally scopes and expires_at');
	end if;
	select f.key into v_field from jsonb_object_keys(p_fields) f (key)
		where f.key <> all ('{name,role,scopes,expires_at}') limit 1;
	if v_field is not null then
		perform autopost.raise_argument('fields', format('has the unknown field %L', v_field),
			'use name, role, scopes, expires_at');
	end if;
	if coalesce(p_fields ->> 'name', '') !~ '^[[:alnum:]][[:alnum:] ._-]{0,63}$' then
		perform autopost.raise_argument('fields', 'name must have 1 to 64 characters',
			'use letters, digits, spaces, dots, dashes and underscores; start with a letter or digit');
	elsif coalesce(p_fields ->> 'role' not in ('viewer', 'editor', 'approver', 'operator', 'owner'), true) then
		perform autopost.raise_argument('fields',
			format('role must be viewer, editor, approver, operator or owner, got %s',
			coalesce(p_fields ->> 'role', 'null')), 'pass one of these roles');
	elsif jsonb_typeof(coalesce(p_fields -> 'scopes', '[]')) <> 'array'
		or coalesce(p_fields -> 'scopes', '[]') @? '$[*] ? (!(@ like_regex "^[a-z]+:(read|write)$"))' then
		perform autopost.raise_argument('fields', 'scopes must be an array of scopes',
			'write ["posts:write", "channels:read"], or omit it for all scopes of the role');
	elsif jsonb_typeof(coalesce(p_fields -> 'expires_at', 'null')) <> 'null'
		and autopost.timestamp_of(p_fields ->> 'expires_at') is null then
		perform autopost.raise_argument('fields', 'expires_at must be a time with an offset',
			'write 2026-12-01T10:00:00+03:00');
	elsif autopost.timestamp_of(p_fields ->> 'expires_at') <= autopost.now_ts() then
		perform autopost.raise_argument('fields', 'expires_at must be in the future', 'pass a later time');
	end if;
	v_key.workspace_id := p_workspace_id;
	v_key.name := p_fields ->> 'name';
	v_key.role := p_fields ->> 'role';
	v_key.scopes := array(select distinct s.value from jsonb_array_elements_text(coalesce(p_fields -> 'scopes', '[]')) s
		order by s.value);
	v_key.expires_at := autopost.timestamp_of(p_fields ->> 'expires_at');
	return v_key;
end
$$;

create or replace function autopost.api_key_shown(p_key autopost.api_keys) returns jsonb
language sql immutable
as $$
-- Purpose: an API key without its hash.
select jsonb_build_object('key_id', p_key.key_id, 'name', p_key.name, 'role', p_key.role, 'scopes', p_key.scopes,
	'enabled', p_key.enabled,
	'expires_at', p_key.expires_at, 'replaced_by', p_key.replaced_by)
$$;

create or replace function autopost.add_key(p_key autopost.api_keys, p_secret_hash text) returns uuid
language plpgsql
as $$
-- Purpose: adds a key under a new id and returns the id.
-- Raises:  AP001 for a malformed hash and for one that is in use.
-- Writes:  api_keys, secret_lookup.
declare
	v_id uuid := autopost.new_id();
begin
	if coalesce(p_secret_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.raise_argument('secret_hash', 'must be a SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
	insert into autopost.api_keys (workspace_id, key_id, name, role, scopes, secret_hash, expires_at, created_at,
		updated_at)
	values (p_key.workspace_id, v_id, p_key.name, p_key.role, p_key.scopes, p_secret_hash, p_key.expires_at,
		autopost.now_ts(), autopost.now_ts());
	return v_id;
exception when unique_violation then
	perform autopost.raise_argument('secret_hash', 'must be new, another key has it', 'create another secret');
	return null;
end
$$;

create or replace function autopost.is_unseen(p_key autopost.api_keys) returns boolean
language sql stable
as $$
-- Purpose: true if the key's last recorded use is at least an hour old.
select p_key.last_used_at is null or p_key.last_used_at <= autopost.now_ts() - interval '1 hour'
$$;
