-- +goose Up
-- Settings of the whole installation. The unit is part of the key. Change them by `autopost setting set`.

-- Locks of take_turn and try_turn: work that only one transaction does at a time.
create table autopost.turns (
	name text not null primary key
);

create table autopost.settings (
	key           text not null primary key,
	value         jsonb not null,
	meaning       text not null,
	updated_at    timestamptz not null default now(),
	default_value jsonb,
	least         bigint, -- smallest allowed value; null: no bound
	most          bigint, -- largest allowed value
	internal      boolean not null default false, -- true: for tests and support; operators need not change it
	check (least <= most)
);

-- For operators.
insert into autopost.settings (key, value, default_value, least, most, meaning)
select v.key, v.value, v.value, v.least, v.most, v.meaning
from (values
	-- Claims and calls. ADAPTER_TIMEOUT_MS must fit sending_lease_seconds.
	('sending_lease_seconds', '300'::jsonb, 2, 86400, 'time for a claimed delivery to end; then it is recovered'),
	('claimed_lease_seconds', '300', 1, 86400, 'time for a delivery to stay claimed without being sent'),
	('max_attempts', '5', 1, 1000, 'calls of a delivery before it is dead, unless a retry policy says otherwise'),
	('dedup_audit_rows', 'false', null, null,
		'keep a delivery with status deduped for each channel that already had a repeated post'),

	-- Failures of platforms and channels.
	('pause_on_permanent_seconds', '3600', 1, 31536000,
		'pause of a channel after a permanent failure of the channel'),
	('disable_after_permanent_streak', '3', 1, 1000000, 'permanent failures in a row that disable a channel'),
	('breaker_channels', '3', 1, 1000000,
		'channels of a rate group that fail at the platform in a row before its breaker opens'),

	-- Ingest.
	('receipt_ttl_hours', '72', 1, 87600, 'time in which a repeated source_ref of a push is a duplicate'),
	('pull_receipt_ttl_hours', '2160', 1, 876000, 'time in which a repeated item of a source is a duplicate'),
	('submission_expire_hours', '72', 1, 8760, 'time in which a person must decide about a moderated post'),
	('global_x_posting_enabled', 'true', null, null, 'false holds the X channel of domain events: no call starts'),
	('global_x_posting_rate_per_hour', '0', 0, 1000000, 'most posts of the X channel per hour; 0 for no ceiling'),
	('global_x_posting_rate_per_day', '0', 0, 1000000, 'most posts of the X channel per day; 0 for no ceiling'),
	('global_x_moderation_enabled', 'false', null, null, 'true makes every event of the X channel wait for a decision'),
	('global_x_account_avatar_id', '""', null, null,
		'avatar whose X channel gets domain events; empty: x_post_config decides'),
	('signing_overlap_hours', '24', 0, 8760, 'time in which the previous signing key stays valid after rotation'),

	-- Sign-in.
	('session_idle_minutes', '60', 1, 525600, 'a session of the pages ends after this time without a request'),
	('session_max_hours', '168', 1, 8760, 'a session of the pages ends after this time'),
	('step_up_minutes', '15', 1, 1440,
		'time after a check of the password in which a person may decide, requeue and manage keys and people'),

	-- Media.
	('max_media_bytes_image', '10485760', 1, 1099511627776, 'largest image that the media store accepts'),
	('max_media_bytes_video', '52428800', 1, 1099511627776,
		'largest medium of any other kind that the media store accepts'),
	('large_video_bytes_threshold', '52428800', 1, 1099511627776, 'size from which a video is large'),

	-- Credentials.
	('auth_lost_hold_days', '7', 1, 3650,
		'time for deliveries to wait for a refused credential before they are dead'),
	('auth_warn_days', '7', 0, 3650, 'warning this long before a credential without automatic renewal expires'),

	-- Retention.
	('event_retention_days', '30', 1, 36500, 'time for which events are kept; at most that of deliveries'),
	('delivery_retention_days', '90', 1, 36500,
		'time for which finished deliveries and decided submissions are kept; at least every dedup window'),
	('message_retention_days', '90', 1, 36500,
		'time for which a message without deliveries is kept after its last use; at least every dedup window'),
	('raw_retention_days', '0', 0, 36500,
		'time for which raw answers of platforms are kept; 0 for off; shorter than that of deliveries'),
	('run_retention_days', '30', 1, 36500, 'time for which ingest runs are kept; events extend it'),
	('audit_retention_days', '365', 1, 36500, 'time for which the audit log is kept'),
	('origin_retention_days', '30', 1, 36500, 'time for which unreferenced media are kept after their last use'),
	('origin_retention_large_video_days', '7', 1, 36500, 'the same for large videos'),
	('webhook_retention_days', '7', 1, 36500, 'time for which requests to result webhooks are kept'),
	('alert_retention_days', '90', 1, 36500, 'time for which ended alerts and messages to targets are kept'),

	-- The shop bot.
	('bot_log_retention_days', '30', 1, 36500, 'time for which conversations of the bot are kept, masked'),
	('bot_state_seconds', '1800', 1, 31536000,
		'a scenario of the bot ends after this time without a message, and an operator''s turn without a reply'),

	-- Result webhooks.
	('webhook_disable_days', '5', 1, 3650, 'a result webhook is disabled if all calls fail for this long'),

	-- Alerts. 0 turns an alert off.
	('operator_workspace', '""', null, null,
		'workspace whose targets get alerts of the installation; empty: the oldest workspace'),
	('alert_dead_threshold', '1', 0, 1000000000,
		'alert at this many dead deliveries; 0 for never, as for all alert_ thresholds'),
	('alert_dead_many', '1000', 0, 1000000000, 'critical alert at this many dead deliveries'),
	('alert_failed_perm_10m', '20', 0, 1000000000,
		'alert when more deliveries than this failed for good in 10 minutes'),
	('alert_paused_channels', '10', 0, 1000000000, 'alert when more channels than this are paused'),
	('alert_oldest_due_seconds', '1800', 0, 1000000000,
		'alert when a delivery without a wait reason is overdue for this long'),
	('alert_unknown_waiting', '1', 0, 1000000000, 'alert at this many unknown outcomes that wait for a person'),
	('alert_moderation_backlog', '100', 0, 1000000000, 'alert at this many posts that wait for a decision'),
	('alert_source_failures', '3', 0, 1000000000, 'alert after this many failed polls of a source in a row'),
	('alert_breaker_seconds', '600', 0, 1000000000, 'alert when a breaker is open for this long'),
	('alert_daemon_silence_seconds', '180', 0, 1000000000,
		'alert after this time without a heartbeat of any dispatcher'),
	('alert_daemon_lost_hours', '24', 0, 876000,
		'alert for this long about a silent daemon while others run; 0 for never'),
	('alert_duty_failures', '3', 0, 1000000000, 'alert after this many failures of a monitor duty in a row'),
	('alert_clock_skew_ms', '2000', 0, 1000000000,
		'alert when the clocks of a daemon and of the database differ by this much'),
	('alert_webhook_failing_seconds', '900', 0, 1000000000,
		'alert when all calls of a result webhook fail for this long; 0 for never'),
	('alert_bot_given_up', '1', 0, 1000000000,
		'alert at this many messages to the bot that were given up after five tries'),
	('alert_bot_errors_10m', '5', 0, 1000000000,
		'alert at this many messages to the bot whose processing failed in 10 minutes'),
	('alert_bot_reply_failures_10m', '5', 0, 1000000000,
		'alert at this many replies of a bot whose calls failed in 10 minutes'),
	('alert_bot_fallback_percent', '50', 0, 100,
		'alert when this share of at least 20 messages of an hour had no rule; 0 for never'),
	('alert_bot_unmatched_day', '20', 0, 1000000000,
		'alert when messages with the same words had no rule this often in a day'),
	('alert_calm_seconds', '120', 0, 86400, 'an alert ends this long after its last finding'),
	('alert_remind_hours', '24', 0, 876000,
		'reminder of an open alert without acknowledgement after this time; 0 for never')
) v (key, value, least, most, meaning);

-- Internal.
insert into autopost.settings (key, value, default_value, least, most, internal, meaning)
select v.key, v.value, v.value, v.least, v.most, true, v.meaning
from (values
	-- A call starts within a second of its claim and ends 15 s before its lease; under a lease below a
	-- minute, in its first half. ADAPTER_TIMEOUT_MS is checked against that, so this is at most 15.
	('lease_margin_seconds', '10'::jsonb, 1, 15, 'a call must end this long before its lease does'),
	('fanout_chunk_channels', '2000', 1, 100000, 'channels per transaction of a fan-out'),
	('platform_cooldown_seconds', '60', 1, 86400,
		'cooldown of a rate group after a permanent failure of the platform'),
	('breaker_probe_seconds', '10', 1, 86400,
		'first pause before a probe of an open breaker; each further pause doubles'),
	('breaker_probe_cap_seconds', '300', 1, 86400, 'longest pause between two probes of an open breaker'),
	('subscription_check_seconds', '300', 1, 86400,
		'pause between two checks of a webhook subscription or of the rights of a bot'),
	('ingress_drops_per_second', '5', 0, 1000000,
		'rejected requests of an endpoint per second that get a run of their own'),
	('event_partition_days', '3', 1, 366, 'days of event partitions that exist in advance'),
	('webhook_poll_ms', '1000', 0, 1000000000, 'pause between two readings of the events of a workspace'),
	('webhook_overlap_seconds', '2', 0, 3600,
		'largest clock difference between successive primaries, and longest time from an event to its write'),
	('submission_lease_seconds', '120', 1, 86400, 'lease of a submission whose media are fetched'),
	('pull_lease_seconds', '120', 1, 86400, 'lease of a poll'),
	-- A renewal may take 20 s and its commit 10 s.
	('auth_refresh_lease_seconds', '60', 30, 3600, 'lease of a credential renewal'),
	('alert_lease_seconds', '120', 1, 86400, 'lease of a message to an alert target')
) v (key, value, least, most, meaning);
