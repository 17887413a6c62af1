create or replace function autopost.list_rate_groups(p_workspace_id text, p_limit int)
	returns setof autopost.list_rate_groups
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the rate groups of a workspace by platform and name: those with a limit, and those
--          of channels.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   platform_limits, channels, platforms.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.* from autopost.list_rate_groups_rows v
	where v.workspace_id = p_workspace_id
	order by v.platform, v.rate_group
	limit p_limit;
end
$$;
