create or replace function autopost.ready_moderation_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists workspaces of the role with a due call to a moderators' chat. Only the engine may call
--          it.
-- Reads:   as moderation_workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('limit', p_limit > 0);
	return query select r from autopost.moderation_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
