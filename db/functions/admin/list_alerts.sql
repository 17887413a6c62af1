create or replace function autopost.list_alerts(p_workspace_id text, p_limit int) returns setof autopost.list_alerts
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists alerts: open ones first, by severity, then newest first.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   list_alerts (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.* from autopost.list_alerts_rows v
	where v.workspace_id = p_workspace_id
	order by v.ended_at is not null, case when v.ended_at is null
		then autopost.severity_rank(v.severity) end desc nulls last, v.alert_id desc
	limit p_limit;
end
$$;
