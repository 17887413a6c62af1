create or replace function autopost.ready_recurrence_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: workspaces with a rule to expand or an occurrence to post. Works across workspaces.
-- Raises:  AP001 if the limit is not positive.
-- Reads:   as recurrence_workspaces.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('limit', p_limit > 0);
	return query select r from autopost.recurrence_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
