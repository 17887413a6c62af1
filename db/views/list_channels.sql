-- Channels with their gate and the limits of their rate group.
create or replace view autopost.list_channels_rows as
select c.workspace_id, c.channel_id, c.platform, c.target_id, c.title, c.enabled, c.paused_until, c.cooldown_until,
	c.error_streak,
	coalesce(a.auth_ref, c.auth_ref) as auth_ref, c.rate_group, c.rate_rps, l.rate_rps as group_rate_rps,
		l.cooldown_until as group_cooldown_until,
	c.max_parallel, g.inflight, c.send_mode, c.tags, c.route_filter, c.settings, c.created_at, c.updated_at,
	c.auth_held, c.auth_lost_at, l.quota_until as group_quota_until, l.breaker_opened_at as group_breaker_opened_at,
	c.effective_rps, c.credential_missing_at
from autopost.channels c
join autopost.channel_gates g on g.workspace_id = c.workspace_id and g.channel_id = c.channel_id
left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
left join autopost.platform_limits l on l.workspace_id = c.workspace_id and l.platform = c.platform
	and l.rate_group = c.rate_group;

create or replace view autopost.list_channels with (security_barrier = true) as
select v.workspace_id, v.channel_id, v.platform, v.target_id, v.title, v.enabled, v.paused_until, v.cooldown_until,
	v.error_streak, v.auth_ref, v.rate_group, v.rate_rps, v.group_rate_rps, v.group_cooldown_until, v.max_parallel,
	v.inflight, v.send_mode, v.tags, v.route_filter, v.settings, v.created_at, v.updated_at, v.auth_held,
	v.auth_lost_at, v.group_quota_until, v.group_breaker_opened_at, v.effective_rps,
	v.credential_missing_at
from autopost.list_channels_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
