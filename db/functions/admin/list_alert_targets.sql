create or replace function autopost.list_alert_targets(p_workspace_id text, p_limit int)
	returns setof autopost.alert_targets
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the alert targets by id, with the result of the last try.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   alert_targets.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select t.* from autopost.alert_targets t where t.workspace_id = p_workspace_id order by t.target_id limit p_limit;
end
$$;
