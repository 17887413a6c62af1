-- +goose Up
-- Everything between a source and the enqueue: endpoints, receipts, sources, runs, submissions.

create table autopost.pull_sources (
	workspace_id text not null references autopost.workspaces (workspace_id),
	source_id    text not null check (source_id <> ''),
	kind         text not null check (kind in ('rss', 'api', 'db', 'filebus')),
	config_json  jsonb not null default '{}' check (jsonb_typeof(config_json) = 'object'),
	enabled      boolean not null default true,
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, source_id)
);

create table autopost.pull_cursors (
	workspace_id text not null,
	source_id    text not null,
	cursor_json  jsonb not null default '{}',
	next_poll_at timestamptz not null default now(), -- also the lease of whoever polls now
	failures     int not null default 0,             -- in a row
	last_error   jsonb,
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, source_id),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id) on delete cascade
);

create table autopost.workspace_endpoints (
	workspace_id         text not null references autopost.workspaces (workspace_id),
	endpoint_id          text not null check (endpoint_id <> ''),
	kind                 text not null check (kind in ('webhook_push', 'bot_webhook', 'pull_source')),
	source_id            text,
	secret_hash          text check (secret_hash ~ '^[0-9a-f]{64}$'),
	signing_ref          text,
	enabled              boolean not null default true,
	ingress_rps          numeric not null default 5 check (ingress_rps > 0),
	max_payload_bytes    int not null default 262144 check (max_payload_bytes > 0),
	hash_drop_window_sec int not null default 10 check (hash_drop_window_sec >= 0),
	moderated            boolean not null default false,
	meta                 jsonb not null default '{}',
	admitted_until       timestamptz, -- rate gate: the instant up to which admitted items have used up ingress_rps
	created_at           timestamptz not null default now(),
	updated_at           timestamptz not null default now(),
	primary key (workspace_id, endpoint_id),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id),
	check ((kind = 'pull_source') = (source_id is not null)),
	check ((kind = 'pull_source') = (secret_hash is null) or (kind = 'webhook_push' and signing_ref is not null))
);
create unique index workspace_endpoints_source on autopost.workspace_endpoints (workspace_id, source_id)
	where enabled and kind = 'pull_source';

-- One row a request or poll, with what came of it.
create table autopost.ingest_runs (
	workspace_id text not null references autopost.workspaces (workspace_id),
	run_id       uuid not null,
	kind         text not null check (kind in ('push', 'pull', 'api', 'command', 'event', 'file', 'page')),
	endpoint_id  text,
	source_id    text,
	started_at   timestamptz not null default now(),
	finished_at  timestamptz,
	stats_json   jsonb not null default '{}',
	items        jsonb not null default '[]', -- the answers, in the order of the posts
	primary key (workspace_id, run_id)
);
create index ingest_runs_started on autopost.ingest_runs (workspace_id, started_at);

create table autopost.ingress_receipts (
	workspace_id  text not null,
	receipt_id    uuid not null,
	endpoint_id   text not null,
	endpoint_kind text not null check (endpoint_kind in ('webhook_push', 'bot_webhook')),
	source_ref    text,
	payload_hash  text not null,
	received_at   timestamptz not null default now(),
	expires_at    timestamptz not null,
	run_id        uuid,
	answer        jsonb, -- what the first request was told
	primary key (workspace_id, receipt_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
);
create unique index ingress_receipts_source_ref on autopost.ingress_receipts (workspace_id, endpoint_id, source_ref)
	where source_ref is not null;
create index ingress_receipts_hash on autopost.ingress_receipts (workspace_id, endpoint_id, payload_hash, received_at desc);
create index ingress_receipts_expiry on autopost.ingress_receipts (expires_at);

create table autopost.pull_receipts (
	workspace_id text not null,
	source_id    text not null,
	source_ref   text not null,
	run_id       uuid,
	received_at  timestamptz not null default now(),
	expires_at   timestamptz not null,
	primary key (workspace_id, source_id, source_ref),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id) on delete cascade
);
create index pull_receipts_expiry on autopost.pull_receipts (expires_at);

-- What is acknowledged but not yet a message: its media are being fetched, or it waits for a decision.
create table autopost.submissions (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	submission_id uuid not null,
	endpoint_id   text not null,
	kind          text not null check (kind in ('push', 'pull', 'api', 'command', 'event', 'file', 'page')),
	status        text not null check (status in ('new', 'fetching', 'pending', 'skipped', 'enqueued', 'rejected', 'expired', 'failed')),
	raw_payload   jsonb not null,
	route_tags    text[] not null default '{}',
	source_ref    text,
	run_id        uuid not null,
	run_item      int not null default 0, -- its place among the posts of the run
	trace_id      uuid not null,
	attempt       int not null default 0,
	next_attempt_at timestamptz not null default now(),
	claim_token   text,
	lease_until   timestamptz,
	last_error    jsonb,
	message_id    uuid,
	answer        jsonb, -- of the enqueue, once it happened
	decided_by    text,
	decided_at    timestamptz,
	reason        text,
	created_at    timestamptz not null default now(),
	updated_at    timestamptz not null default now(),
	primary key (workspace_id, submission_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id),
	check ((claim_token is null) = (lease_until is null)),
	check ((status = 'enqueued') = (answer is not null))
);
create index submissions_due on autopost.submissions (workspace_id, next_attempt_at) where status = 'fetching';
create index submissions_run on autopost.submissions (workspace_id, run_id);

-- What claim_submissions answers. Attributes may be appended, never changed.
create type autopost.claimed_submission as (
	workspace_id  text,
	submission_id uuid,
	endpoint_id   text,
	kind          text,
	attempt       int,
	claim_token   text,
	lease_until   timestamptz,
	raw_payload   jsonb,
	trace_id      uuid
);

-- What list_due_sources answers. Attributes may be appended, never changed.
create type autopost.due_source as (
	workspace_id text,
	source_id    text,
	endpoint_id  text,
	kind         text,
	config_json  jsonb,
	cursor_json  jsonb
);
