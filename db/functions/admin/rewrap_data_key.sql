create or replace function autopost.rewrap_data_key(p_workspace_id text, p_version int, p_from_key_id text,
	p_key_id text, p_wrapped_key text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: replaces the master key that wraps a data key (base64). The data key does not change.
--          Only the engine may call it.
-- Returns: {"applied"}: false if p_from_key_id does not wrap the row any more.
-- Raises:  AP001 for a wrong argument.
-- Locks:   data_keys.
-- Writes:  data_keys.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('version', p_version > 0),
		autopost.require_argument('from_key_id', p_from_key_id <> ''),
		autopost.require_argument('key_id', p_key_id <> ''),
		autopost.require_argument('wrapped_key', p_wrapped_key <> '');
	update autopost.data_keys k set key_id = p_key_id, wrapped_key = decode(p_wrapped_key, 'base64')
	where k.workspace_id = p_workspace_id and k.version = p_version and k.key_id = p_from_key_id;
	return jsonb_build_object('applied', found);
end
$$;
