-- +goose Up
-- What configuration by functions needs to know: the form of a platform's targets, the default of a setting; and what lists of it show.

-- A regular expression that channels.target_id must match, and an example for who is told so; null: any text does.
alter table autopost.platforms
	add column target_form    text,
	add column target_example text;
update autopost.platforms p
set target_form = v.form, target_example = v.example
from (values
	('telegram', '^(-?[0-9]{1,19}|@[A-Za-z0-9_]{1,32})(:[0-9]{1,10})?$', '@name or -1001234567890, with :thread behind it for a topic of a forum'),
	('max', '^-?[0-9]{1,19}$', '-68123456789')
) v (platform, form, example)
where p.platform = v.platform;

-- What a setting is until somebody changes it. A migration that adds a setting names it here too.
alter table autopost.settings add column default_value jsonb;
update autopost.settings s
set default_value = coalesce((
	select d.value from (values
		('audit_retention_days', '365'::jsonb), ('auth_lost_hold_days', '7'), ('breaker_channels', '3'), ('breaker_probe_cap_seconds', '300'),
		('breaker_probe_seconds', '10'), ('claimed_lease_seconds', '300'), ('delivery_retention_days', '90'), ('disable_after_permanent_streak', '3'),
		('dispatch_window_workspaces', '100'), ('event_partition_days', '14'), ('event_retention_days', '30'), ('fanout_chunk_channels', '2000'),
		('large_video_bytes_threshold', '52428800'), ('lease_margin_seconds', '10'), ('limit_escalation_seconds', '10'), ('max_attempts', '5'),
		('message_retention_days', '90'), ('origin_retention_days', '30'), ('origin_retention_large_video_days', '7'),
		('pause_on_permanent_seconds', '3600'), ('platform_cooldown_seconds', '60'), ('pull_lease_seconds', '120'), ('pull_receipt_ttl_hours', '2160'),
		('quota_recheck_seconds', '600'), ('receipt_ttl_hours', '72'), ('run_retention_days', '30'), ('run_silence_seconds', '45'),
		('sending_lease_seconds', '300'), ('slot_horizon_ms', '1000'), ('slot_tolerance_ms', '100'), ('submission_lease_seconds', '120'),
		('submission_max_attempts', '8')) d (key, value)
	where d.key = s.key), s.value);

-- Rate groups: those that have a row, and those that only channels name.
create view autopost.list_rate_groups with (security_invoker = true) as
select g.workspace_id, g.platform, g.rate_group, l.rate_rps, coalesce(c.channels, 0) as channels, coalesce(c.enabled, 0) as enabled_channels,
	l.cooldown_until, l.quota_until, l.breaker_opened_at
from (
	select l.workspace_id, l.platform, l.rate_group from autopost.platform_limits l
	union
	select c.workspace_id, c.platform, c.rate_group from autopost.channels c) g
left join autopost.platform_limits l on l.workspace_id = g.workspace_id and l.platform = g.platform and l.rate_group = g.rate_group
left join lateral (
	select count(*) as channels, count(*) filter (where c.enabled) as enabled from autopost.channels c
	where c.workspace_id = g.workspace_id and c.platform = g.platform and c.rate_group = g.rate_group) c on true;
