create or replace function autopost.get_data_key(p_workspace_id text, p_version int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a data key of a workspace, which seals its raw payloads. Only the engine may
--          call it.
-- Returns: {"version", "key_id", "wrapped_key"} (base64), or null.
-- Raises:  AP001 for a wrong argument.
-- Reads:   data_keys.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('version', p_version is not null);
	return (
		select autopost.shown_data_key(row(k.*)::autopost.data_keys) from autopost.data_keys k
		where k.workspace_id = p_workspace_id and k.version = p_version);
end
$$;
