create or replace function autopost.get_credential(p_workspace_id text, p_auth_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: a credential with the data that the engine needs to open it. For the engine only.
-- Returns: {"platform", "secret_ref", "hosts" of platform http, "last_version": the next sealed secret gets the number after
--          it, "stale": true if the secret in force has expired, "sealed": {"version", "key_id",
--          "wrapped_key", "sealed", "source"} if there is one}, or null if the name is not bound.
-- Reads:   credential_bindings, credential_health, sealed_secrets.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.credential_of(p_workspace_id, p_auth_ref);
end
$$;
