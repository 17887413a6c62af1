-- +goose Up
-- Events: the append-only history of posts. One partition per day, no foreign keys.

-- The actions of events. They are a domain, because PostgreSQL parses the check of a column for each statement, and that
-- of a domain once per session: this list took 6 % of a claim and commit of one row.
create domain autopost.event_action as text check (value in (
	'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed',
	'failed_permanent',
	'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled', 'channel_moved', 'message_tag_mismatch',
	'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated', 'ingress_rate_limited',
	'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error', 'unknown_outcome',
	'unknown_resolved', 'comment_failed',
	'released', 'cooldown', 'breaker', 'submission_failed', 'stale_commit', 'manual_skip',
	'auth_lost', 'auth_refreshed', 'auth_expiring',
	'submission_pending', 'submission_approved', 'submission_rejected', 'submission_expired', 'submission_skipped',
	'submission_edited', 'approval_refused', 'occurrence_skipped',
	'filebus_waiting', 'filebus_approved', 'filebus_publishing', 'filebus_published', 'filebus_rejected',
	'filebus_failed', 'filebus_unknown', 'filebus_refused',
	'bot_replied', 'bot_fallback', 'bot_escalated',
	'act_requested', 'act_done', 'act_retry_scheduled', 'act_failed', 'act_void', 'rescheduled'));

create table autopost.events (
	workspace_id text not null,
	id           uuid not null,
	delivery_id  uuid,
	message_id   uuid,
	channel_id   text,
	ts           timestamptz not null,
	action       autopost.event_action not null,
	attempt      int not null default 0 check (attempt >= 0),
	result       text not null check (result in ('ok', 'error')),
	error        jsonb,
	payload_ref  text,
	meta         jsonb not null default '{}',
	primary key (workspace_id, ts, id)
) partition by range (ts);
-- Led by the id, which is unique without its workspace: shorter, and no query of a workspace can take it for its own.
create index events_delivery on autopost.events (delivery_id, ts) where delivery_id is not null;
-- Events of a message without a delivery. Those of its deliveries are found by delivery.
create index events_message on autopost.events (workspace_id, message_id, ts)
	where message_id is not null and delivery_id is null;
-- For the list of errors.
create index events_errors on autopost.events (workspace_id, ts, id) where result = 'error';
-- Link to a raw payload: few events have one.
create index events_raw on autopost.events (workspace_id, id) where payload_ref is not null;
-- Rows without a partition of their own. A row here means that ensure_event_partitions is late.
create table autopost.events_default partition of autopost.events default;
alter table autopost.events alter column workspace_id set statistics 0; -- as channels

-- Data keys, which seal the raw payloads of a workspace. The newest version seals, all of them open. A master key, which
-- the database does not have, wraps each.
create table autopost.data_keys (
	workspace_id text not null references autopost.workspaces (workspace_id),
	version      int not null check (version > 0),
	key_id       text not null check (key_id <> ''), -- of the master key
	wrapped_key  bytea not null,
	created_at   timestamptz not null,
	primary key (workspace_id, version)
);

-- Links to raw payloads: each works once, until it expires.
create table autopost.raw_links (
	workspace_id text not null references autopost.workspaces (workspace_id),
	token_hash   text not null check (token_hash ~ '^[0-9a-f]{64}$'),
	event_id     uuid not null,
	payload_ref  text not null,
	operator     text not null,
	reason       text not null,
	expires_at   timestamptz not null,
	used_at      timestamptz,
	primary key (workspace_id, token_hash)
);
