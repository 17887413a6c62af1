create or replace function autopost.list_due_refreshes(p_workspace_id text, p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the credentials to renew now, most urgent first: they expire soon, or the last
--          renewal failed. The caller continues with begin_refresh.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   credential_health.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	if autopost.is_restored() then
		return; -- a renewal may end the token of the original
	end if;
	return query
	select h.auth_ref from autopost.credential_health h
	where h.workspace_id = p_workspace_id and h.next_refresh_at <= autopost.now_ts() and h.lost_at is null
	and coalesce(h.lease_until <= autopost.now_ts(), true)
	order by h.next_refresh_at
	limit p_limit;
end
$$;
