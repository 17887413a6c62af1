create or replace function autopost.create_api_key(p_workspace_id text, p_fields jsonb, p_secret_hash text,
	p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds an API key by the SHA-256 (hexadecimal) of its secret. The secret is never passed.
--          p_fields: {"name", "role", "scopes", "expires_at"}; scopes narrow the role; scopes and
--          expires_at are optional.
-- Returns: {"applied": true, "id"}.
-- Raises:  AP001 for a wrong argument.
-- Writes:  api_keys, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_key autopost.api_keys;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	v_key := autopost.api_key_of(p_workspace_id, p_fields);
	v_key.key_id := autopost.add_key(v_key, p_secret_hash);
	v_key.enabled := true;
	perform autopost.audit(p_workspace_id, 'create_api_key', 'api_key:' || v_key.key_id, v_act, '{}',
		autopost.api_key_shown(v_key));
	return jsonb_build_object('applied', true, 'id', v_key.key_id);
end
$$;
