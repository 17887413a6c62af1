create or replace function autopost.add_data_key(p_workspace_id text, p_version int, p_key_id text,
	p_wrapped_key text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds a version of the data key of a workspace, wrapped (base64) by a master key. The
--          first caller wins. Only the engine may call it.
-- Returns: {"applied"}: false if the version exists.
-- Raises:  AP001 for a wrong argument.
-- Writes:  data_keys.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('version', p_version > 0), autopost.require_argument('key_id', p_key_id <> ''),
		autopost.require_argument('wrapped_key', p_wrapped_key <> '');
	insert into autopost.data_keys (workspace_id, version, key_id, wrapped_key, created_at)
	values (p_workspace_id, p_version, p_key_id, decode(p_wrapped_key, 'base64'), autopost.now_ts())
	on conflict (workspace_id, version) do nothing;
	return jsonb_build_object('applied', found);
end
$$;
