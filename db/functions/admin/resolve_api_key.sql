create or replace function autopost.resolve_api_key(p_secret_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the enabled, unexpired key with this SHA-256 of a secret. Works across workspaces.
-- Returns: {"workspace_id", "key_id", "name", "role", "scopes", "unseen": true if touch_api_key
--          should record the use}; null without such a key.
-- Reads:   secret_lookup, api_keys.
declare
	v_of record;
	v_key autopost.api_keys;
begin
	perform autopost.enter_all_workspaces();
	select l.workspace_id, l.subject_id::uuid as key_id into v_of from autopost.secret_lookup l
	where l.kind = 'api_key' and l.secret_hash = p_secret_hash;
	if not found or not autopost.may_access(v_of.workspace_id) then
		return null;
	end if;
	select k.* into v_key from autopost.api_keys k
	where k.workspace_id = v_of.workspace_id and k.key_id = v_of.key_id and k.enabled
	and (k.expires_at is null or k.expires_at > autopost.now_ts());
	if not found then
		return null;
	end if;
	return jsonb_build_object('workspace_id', v_key.workspace_id, 'key_id', v_key.key_id, 'name', v_key.name, 'role',
		v_key.role, 'scopes', v_key.scopes, 'unseen', autopost.is_unseen(v_key));
end
$$;
