create or replace function autopost.list_data_keys(p_workspace_id text, p_not_key_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the data keys of a workspace that another master key than p_not_key_id wraps. Only
--          the engine may call it.
-- Returns: an array of data keys as in get_data_key.
-- Raises:  AP001 for a wrong argument.
-- Reads:   data_keys.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('not_key_id', p_not_key_id <> '');
	return (
		select coalesce(jsonb_agg(autopost.shown_data_key(row(k.*)::autopost.data_keys) order by k.version), '[]')
			from autopost.data_keys k
		where k.workspace_id = p_workspace_id and k.key_id <> p_not_key_id);
end
$$;
