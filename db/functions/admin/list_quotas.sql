create or replace function autopost.list_quotas(p_workspace_id text, p_limit int)
returns table (subject text, window_seconds int, max_sends int, counts text, used int, free_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the quotas of a workspace by subject and window, with present use. free_at: when a
--          post may start again; null if it may now.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   quotas, quota_uses.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select q.subject, q.window_seconds, q.max_sends, q.counts, q.used, q.free_at from autopost.quotas_shown(p_workspace_id) q
	order by q.subject, q.window_seconds
	limit p_limit;
end
$$;
