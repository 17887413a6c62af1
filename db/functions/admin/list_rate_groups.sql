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
	select p_workspace_id, g.platform, g.rate_group, l.rate_rps, g.channels, g.enabled, l.cooldown_until, l.quota_until,
		l.breaker_opened_at, p.group_rps
	from (
		select x.platform, x.rate_group, count(x.channel_id) as channels,
			count(x.channel_id) filter (where x.enabled) as enabled
		from (
			select c.platform, c.rate_group, c.channel_id, c.enabled from autopost.channels c
			where c.workspace_id = p_workspace_id
			union all
			select l.platform, l.rate_group, null, null from autopost.platform_limits l
			where l.workspace_id = p_workspace_id) x
		group by x.platform, x.rate_group) g
	left join autopost.platform_limits l on l.workspace_id = p_workspace_id and l.platform = g.platform
		and l.rate_group = g.rate_group
	left join autopost.platforms p on p.platform = g.platform
	order by g.platform, g.rate_group
	limit p_limit;
end
$$;
