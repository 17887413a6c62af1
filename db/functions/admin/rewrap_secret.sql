create or replace function autopost.rewrap_secret(
	p_workspace_id text, p_auth_ref text, p_version int, p_from_key_id text, p_key_id text, p_wrapped_key text
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: replaces the data key of a sealed secret, wrapped (base64) by another master key. The
--          secret does not change. Only the engine may call it.
-- Returns: {"applied"}: false if p_from_key_id does not wrap the row any more.
-- Locks:   sealed_secrets.
-- Writes:  sealed_secrets.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('auth_ref', p_auth_ref <> ''),
		autopost.require_argument('version', p_version is not null),
		autopost.require_argument('from_key_id', p_from_key_id <> ''),
			autopost.require_argument('key_id', p_key_id <> ''),
			autopost.require_argument('wrapped_key', p_wrapped_key <> '');
	update autopost.sealed_secrets s set key_id = p_key_id, wrapped_key = decode(p_wrapped_key, 'base64')
	where s.workspace_id = p_workspace_id and s.auth_ref = p_auth_ref and s.version = p_version
		and s.key_id = p_from_key_id;
	return jsonb_build_object('applied', found);
end
$$;
