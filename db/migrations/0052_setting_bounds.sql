-- +goose Up
-- What each setting may be. Null: no bound, as of a text. What an installation has already stays as it is until it is changed.
alter table autopost.settings
	add column least bigint,
	add column most  bigint,
	add check (least <= most);

update autopost.settings s
set least = v.least, most = v.most
from (values
	-- A call begins within a second of its claim, and ends 15 s before its lease, under a lease below a minute in its first half: what
	-- ADAPTER_TIMEOUT_MS is held against. So a lease is longer than a slot is reserved ahead, and the margin no longer than those 15 s.
	('sending_lease_seconds', 2, 86400),
	('lease_margin_seconds', 1, 15),
	('slot_horizon_ms', 100, 1000),
	('slot_tolerance_ms', 10, 100),
	('claimed_lease_seconds', 1, 86400),
	-- Daemons touch their run, and observe the clock, every 15 s; an observation may take 2 s, and two are compared.
	('run_silence_seconds', 20, 3600),
	('clock_trust_seconds', 20, 3600),
	('clock_jump_ms', 4001, 3600000),
	('clock_slack_seconds', 0, 86400),
	('max_attempts', 1, 1000),
	('pause_on_permanent_seconds', 1, 31536000),
	('disable_after_permanent_streak', 1, 1000000),
	('platform_cooldown_seconds', 1, 86400),
	('limit_escalation_seconds', 0, 3600),
	('breaker_channels', 1, 1000000),
	('breaker_probe_seconds', 1, 86400),
	('breaker_probe_cap_seconds', 1, 86400),
	('quota_recheck_seconds', 1, 86400),
	('dispatch_window_workspaces', 1, 1000000),
	('fanout_chunk_channels', 1, 100000),
	('auth_lost_hold_days', 1, 3650),
	('rights_hold_days', 1, 3650),
	-- A renewal may take 20 s, and its commit 10 s.
	('auth_refresh_lease_seconds', 30, 3600),
	('auth_refresh_ahead_seconds', 0, 31536000),
	('auth_warn_days', 0, 3650),
	('auth_keep_replaced_hours', 0, 87600),
	('receipt_ttl_hours', 1, 87600),
	('pull_receipt_ttl_hours', 1, 876000),
	('submission_lease_seconds', 1, 86400),
	('submission_max_attempts', 1, 1000),
	('pull_lease_seconds', 1, 86400),
	('pull_hint_max_seconds', 0, 31536000),
	('ingress_drops_per_second', 0, 1000000),
	('ingress_drop_window_seconds', 1, 86400),
	('signature_tolerance_seconds', 1, 86400),
	('signing_overlap_hours', 0, 8760),
	('bot_chat_updates_per_minute', 0, 1000000),
	('subscription_check_seconds', 1, 86400),
	('api_request_ttl_hours', 1, 8760),
	('max_media_bytes_image', 1, 1099511627776),
	('max_media_bytes_video', 1, 1099511627776),
	('large_video_bytes_threshold', 1, 1099511627776),
	('media_removal_seconds', 60, 86400),
	('event_partition_days', 1, 366),
	('event_retention_days', 1, 36500),
	('delivery_retention_days', 1, 36500),
	('message_retention_days', 1, 36500),
	('run_retention_days', 1, 36500),
	('audit_retention_days', 1, 36500),
	('origin_retention_days', 1, 36500),
	('origin_retention_large_video_days', 1, 36500),
	('webhook_retention_days', 1, 36500),
	('webhook_disable_days', 1, 3650),
	('webhook_overlap_seconds', 0, 3600),
	('webhook_poll_ms', 0, 1000000000),
	('alert_retention_days', 1, 36500),
	('alert_lease_seconds', 1, 86400),
	('alert_calm_seconds', 0, 86400)) v (key, least, most)
where s.key = v.key;

-- The levels of alerts, 0 for never.
update autopost.settings set least = 0, most = case when key like '%\_hours' then 876000 else 1000000000 end
where key like 'alert\_%' and least is null and jsonb_typeof(default_value) = 'number';

-- Whether a channel that had a content already gets a delivery of status deduped for each repeat of it, for those who must account for it.
insert into autopost.settings (key, value, default_value, meaning)
values ('dedup_audit_rows', 'false', 'false', 'whether a delivery is kept, as deduped, for each channel that had a repeated post already; it is never sent and never counts as a repeat');
