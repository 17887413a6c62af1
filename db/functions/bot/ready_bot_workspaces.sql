create or replace function autopost.ready_bot_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists workspaces of the role with a due message of a bot, or a received message to process.
-- Raises:  AP001 for a wrong argument.
-- Reads:   as bot_workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('limit', p_limit > 0);
	return query select r from autopost.bot_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
