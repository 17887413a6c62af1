-- +goose Up
-- The queue: one row per message and channel. And the daemons that work on it.

create table autopost.deliveries (
	workspace_id        text not null,
	delivery_id         uuid not null,
	message_id          uuid not null,
	channel_id          text not null,
	hash_version        int not null,
	content_hash        text not null,
	not_before          timestamptz not null default now(),
	scheduled_for       timestamptz,
	status              text not null default 'queued' check (status in
		('queued', 'claimed', 'sending', 'sent', 'retry', 'deduped', 'failed_permanent', 'dead')),
	attempt             int not null default 0 check (attempt >= 0),
	granted_attempts    int not null default 0 check (granted_attempts >= 0),
	next_retry_at       timestamptz,
	due_at              timestamptz not null generated always as (
		case when status = 'retry' then greatest(not_before, scheduled_for, next_retry_at)
		     else greatest(not_before, scheduled_for) end) stored,
	provider_message_id text,
	sent_at             timestamptz,
	last_error          jsonb,
	rendered_text       text not null default '',
	render_meta         jsonb not null default '{}',
	template_version    text,
	trace_id            uuid,
	ingest_run_id       uuid,
	enqueue_batch_id    uuid,
	claimed_at          timestamptz,
	claimed_by          text, -- the run that holds it
	claim_token         text,
	sending_started_at  timestamptz,
	sending_lease_until timestamptz,
	send_at             timestamptz, -- its reserved rate slot
	last_call_at        timestamptz, -- when its last call began
	unknown_outcomes    int not null default 0 check (unknown_outcomes >= 0),
	unknown_allowance   int not null default 1, -- unknown outcomes after which it may still be sent again
	outcome_unknown_at  timestamptz,
	settled             jsonb, -- the last commit: its token and its answer, for a commit that is asked again
	finished_at         timestamptz, -- when it became sent, deduped, failed_permanent or dead
	created_at          timestamptz not null default now(),
	updated_at          timestamptz not null default now(),
	primary key (workspace_id, delivery_id),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id),
	check ((status = 'sent') = (sent_at is not null)),
	check (status <> 'sent' or provider_message_id is not null),
	check ((status in ('claimed', 'sending')) = (claim_token is not null)),
	check ((status = 'sending') = (sending_lease_until is not null)),
	check (status <> 'retry' or next_retry_at is not null)
) with (fillfactor = 80);

-- Which row of a channel is due next: claim, gates.
create index deliveries_due on autopost.deliveries (workspace_id, channel_id, due_at, delivery_id)
	where status in ('queued', 'retry');
-- At most one live delivery per content and channel, and whether there is one: enqueue.
create unique index deliveries_inflight on autopost.deliveries (workspace_id, content_hash, channel_id, hash_version)
	where status in ('queued', 'claimed', 'sending', 'retry');
-- When this content was last sent there: dedup window.
create index deliveries_sent on autopost.deliveries (workspace_id, content_hash, channel_id, hash_version, sent_at)
	where status = 'sent';
-- What is in flight, for lease recovery.
create index deliveries_leased on autopost.deliveries (workspace_id, claimed_at)
	where status in ('claimed', 'sending');
-- What a person must look at.
create index deliveries_troubled on autopost.deliveries (workspace_id, status, updated_at)
	where status in ('dead', 'failed_permanent');
-- The matrix of a message.
create index deliveries_message on autopost.deliveries (workspace_id, message_id);
-- Chunked fan-out repeated after a crash enqueues nothing twice.
create unique index deliveries_batch on autopost.deliveries (workspace_id, enqueue_batch_id, channel_id, hash_version, content_hash)
	where enqueue_batch_id is not null;

-- Heartbeats of daemons: the leases of a silent run are over. No workspace: written by touch_run alone.
create table autopost.dispatch_runs (
	run_id     text not null primary key,
	started_at timestamptz not null default now(),
	seen_at    timestamptz not null default now()
);

-- What claim_deliveries answers. Attributes may be appended, never changed.
create type autopost.claimed_delivery as (
	workspace_id             text,
	delivery_id              uuid,
	message_id               uuid,
	channel_id               text,
	platform                 text,
	target_id                text,
	auth_ref                 text,
	rate_group               text,
	attempt                  int,
	claim_token              text,
	sending_lease_until      timestamptz,
	send_at                  timestamptz,
	rendered_text            text,
	render_meta              jsonb,
	payload                  jsonb,
	settings                 jsonb,
	trace_id                 uuid,
	on_unknown               text,
	unknown_outcomes         int,
	last_call_at             timestamptz,
	last_provider_message_id text
);
