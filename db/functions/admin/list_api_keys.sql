create or replace function autopost.list_api_keys(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_api_keys
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the API keys, newest first, with disabled ones. All keys of p_filter are optional:
--          key_id, before_id (older than this id: the next page).
-- Raises:  AP001 for an unknown key, a malformed id, or a limit outside 1 to 10000.
-- Reads:   list_api_keys (view).
declare
	v_key_id uuid := autopost.uuid_in(p_filter, 'key_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{key_id,before_id}', p_limit);
	return query
	select v.* from autopost.list_api_keys v
	where v.workspace_id = p_workspace_id
	and (v_key_id is null or v.key_id = v_key_id)
	and (v_before_id is null or v.key_id < v_before_id)
	order by v.key_id desc
	limit p_limit;
end
$$;
