create or replace function autopost.begin_raw(p_workspace_id text, p_payload jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: prepares a raw payload for its storage: masks secrets and personal data, and returns the
--          data key that seals it. Only the engine may call it.
-- Returns: {"payload", "key": {"version", "key_id", "wrapped_key"}}; key is null before the first.
-- Raises:  AP001 for a wrong argument.
-- Reads:   data_keys.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('payload', p_payload is not null);
	return jsonb_build_object('payload', autopost.redact(p_payload), 'key', (
		select autopost.shown_data_key(row(k.*)::autopost.data_keys) from autopost.data_keys k
		where k.workspace_id = p_workspace_id
		order by k.version desc
		limit 1));
end
$$;
