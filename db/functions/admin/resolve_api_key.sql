create or replace function autopost.resolve_api_key(p_secret_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the enabled, unexpired key with this SHA-256 of a secret. Works across workspaces.
-- Returns: {"workspace_id", "key_id", "name", "role", "scopes", "unseen": true if touch_api_key
--          should record the use}; null without such a key.
-- Reads:   secret_lookup, api_keys.
declare
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	select jsonb_build_object('workspace_id', k.workspace_id, 'key_id', k.key_id, 'name', k.name, 'role', k.role,
		'scopes', k.scopes,
		'unseen', autopost.is_unseen(row(k.*)::autopost.api_keys)) into v_answer
	from autopost.secret_lookup l
	join autopost.api_keys k on k.workspace_id = l.workspace_id and k.key_id = l.subject_id::uuid
	where l.kind = 'api_key' and l.secret_hash = p_secret_hash and k.enabled
	and (k.expires_at is null or k.expires_at > autopost.now_ts())
	and autopost.may_access(l.workspace_id);
	return v_answer;
end
$$;
