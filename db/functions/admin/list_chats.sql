create or replace function autopost.list_chats(p_workspace_id text, p_limit int) returns setof autopost.list_chats
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the chats that the workspace's bots are or were in, by platform, credential and
--          id. channel_ids names the channels of a chat. Only chats that the platforms reported are
--          known.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   list_chats (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.* from autopost.list_chats_rows v
	where v.workspace_id = p_workspace_id
	order by v.platform, v.auth_ref, v.target_id
	limit p_limit;
end
$$;
