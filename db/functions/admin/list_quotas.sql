create or replace function autopost.list_quotas(p_workspace_id text, p_limit int)
returns table (subject text, window_seconds int, max_sends int, used int, free_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The quotas of a workspace by subject and window, how much of each is used now, and when its subject has room again (null: it has).
-- Raises AP001 for a limit out of 1 to 10000. Reads: quotas, quota_uses.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select q.subject, q.window_seconds, q.max_sends, (
			select count(*)::int from autopost.quota_uses u
			where u.workspace_id = p_workspace_id and u.subject = q.subject and u.used_at > v_now - make_interval(secs => q.window_seconds)),
		autopost.quota_free_at(p_workspace_id, q.subject, v_now)
	from autopost.quotas q
	where q.workspace_id = p_workspace_id
	order by q.subject, q.window_seconds
	limit p_limit;
end
$$;
