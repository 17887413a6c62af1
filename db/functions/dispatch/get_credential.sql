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
	return (
		select jsonb_strip_nulls(jsonb_build_object('platform', b.platform, 'secret_ref', b.secret_ref, 'hosts', b.hosts, 'last_version',
			h.last_version,
			'stale', coalesce(h.valid_until <= autopost.now_ts(), false), 'sealed', autopost.shown_sealed(s)))
		from autopost.credential_bindings b
		join autopost.credential_health h on h.workspace_id = p_workspace_id and h.auth_ref = b.auth_ref
		left join autopost.sealed_secrets s on s.workspace_id = p_workspace_id and s.auth_ref = b.auth_ref
			and s.retired_at is null
		where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref);
end
$$;
