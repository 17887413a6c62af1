create or replace function autopost.list_channels(p_workspace_id text, p_limit int) returns setof autopost.list_channels
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the channels of a workspace by id, with gate and group limit.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   list_channels (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.* from autopost.list_channels_rows v
	where v.workspace_id = p_workspace_id
	order by v.channel_id
	limit p_limit;
end
$$;
