-- +goose Up
-- Whether a post is there: calls that bear a key, what an adapter that asks must know of the channel's other posts, and chats that move.

alter table autopost.platforms
	add column idempotent boolean not null default false; -- whether a call that is repeated is taken once: it bears a key that stays
update autopost.platforms set idempotent = true where platform = 'webhook';
update autopost.platforms set settle_seconds = 10 where platform = 'max';

-- Of a code that costs no attempt, max_attempts is how often.
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms, ladder_ms, jitter, max_attempts, costs_attempt) values
	('max', 'max_429', 'exponential', 1000, 600000, '{}', 0.2, null, true), -- MAX states no wait
	('*', 'chat_moved', 'ladder', 2000, 600000, '{1}', 0, 12, false); -- the channel has the new target by then
update autopost.retry_policies set costs_attempt = false where code = 'attachment.not.ready';

alter type autopost.claimed_delivery add attribute known_posts jsonb;

-- What else of a channel is in doubt: known_posts.
create index deliveries_doubted on autopost.deliveries (workspace_id, channel_id, outcome_unknown_at)
	where unknown_outcomes > 0;

-- The list of actions grows by channel_moved. What was written before was held to the narrower one, so that no row needs to be read.
alter table autopost.events drop constraint events_action_check;
alter table autopost.events add constraint events_action_check check (action in (
	'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed', 'failed_permanent',
	'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled', 'channel_moved', 'message_tag_mismatch',
	'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated', 'ingress_rate_limited',
	'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error', 'unknown_outcome', 'unknown_resolved',
	'released', 'cooldown', 'breaker', 'submission_failed', 'stale_commit', 'manual_skip',
	'auth_lost', 'auth_refreshed', 'auth_expiring',
	'act_requested', 'act_done', 'act_retry_scheduled', 'act_failed', 'act_void')) not valid;
