-- Rate groups of platform_limits and of channels.
create or replace view autopost.list_rate_groups_rows as
select g.workspace_id, g.platform, g.rate_group, l.rate_rps, c.channels, c.enabled as enabled_channels,
	l.cooldown_until, l.quota_until, l.breaker_opened_at, p.group_rps as platform_rps
from (
	select l.workspace_id, l.platform, l.rate_group from autopost.platform_limits l
	union
	select c.workspace_id, c.platform, c.rate_group from autopost.channels c) g
left join autopost.platform_limits l on l.workspace_id = g.workspace_id and l.platform = g.platform
	and l.rate_group = g.rate_group
left join autopost.platforms p on p.platform = g.platform
cross join lateral (
	select count(*) as channels, count(*) filter (where c.enabled) as enabled from autopost.channels c
	where c.workspace_id = g.workspace_id and c.platform = g.platform and c.rate_group = g.rate_group) c;

create or replace view autopost.list_rate_groups with (security_barrier = true) as
select v.workspace_id, v.platform, v.rate_group, v.rate_rps, v.channels, v.enabled_channels, v.cooldown_until,
	v.quota_until, v.breaker_opened_at, v.platform_rps
from autopost.list_rate_groups_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
