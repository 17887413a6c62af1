-- +goose Up
-- Result webhooks report events to customers. A cursor reads the events; sending posts writes nothing here.

create table autopost.result_webhooks (
	workspace_id      text not null references autopost.workspaces (workspace_id),
	webhook_id        text not null check (webhook_id <> ''),
	url               text not null check (url <> ''),
	signing_ref       text not null check (signing_ref <> ''), -- a credential of platform webhook
	old_signing_ref   text, -- signs too, until old_signing_until
	old_signing_until timestamptz,
	event_types       text[] not null default '{*}', -- "delivery.sent", "post.*"
	channel_ids       text[] not null default '{}', -- only events of these channels; empty: all
	tags              text[] not null default '{}', -- only events of channels with one of these tags; empty: all
	enabled           boolean not null default true,
	rps               numeric not null default 20 check (rps > 0),
	max_parallel      int not null default 4 check (max_parallel between 1 and 100),
	timeout_seconds   int not null default 15 check (timeout_seconds between 1 and 60),
	enabled_at        timestamptz not null, -- only a replay sends earlier events
	next_send_at      timestamptz not null, -- by rps
	failing_since     timestamptz, -- no successful call since then
	disabled_reason   text, -- gone or failing, if the engine disabled it
	created_at        timestamptz not null default now(),
	updated_at        timestamptz not null default now(),
	primary key (workspace_id, webhook_id),
	check ((old_signing_ref is null) = (old_signing_until is null))
);
create index result_webhooks_enabled on autopost.result_webhooks (workspace_id) where enabled;

-- Requests to a result webhook.
create table autopost.webhook_sends (
	workspace_id text not null,
	webhook_id   text not null,
	event_id     uuid not null, -- the header webhook-id; a retry keeps it
	event_type   text not null,
	event_at     timestamptz not null,
	body         text not null, -- a retry sends the same bytes
	status       text not null default 'pending' check (status in ('pending', 'sending', 'delivered', 'dead')),
	attempt      int not null default 0 check (attempt >= 0), -- calls since it was last queued
	due_at       timestamptz not null, -- of a sending row: end of its lease
	claim_token  text,
	http_status  int, -- of the last answer
	error        text, -- of the last failed call
	created_at   timestamptz not null,
	attempted_at timestamptz,
	finished_at  timestamptz,
	primary key (workspace_id, webhook_id, event_id),
	foreign key (workspace_id, webhook_id) references autopost.result_webhooks (workspace_id, webhook_id)
		on delete cascade,
	check ((status = 'sending') = (claim_token is not null)),
	check ((status in ('delivered', 'dead')) = (finished_at is not null))
);
create index webhook_sends_due on autopost.webhook_sends (workspace_id, webhook_id, due_at)
	where status in ('pending', 'sending');
create index webhook_sends_sending on autopost.webhook_sends (workspace_id, webhook_id) where status = 'sending';
create index webhook_sends_told on autopost.webhook_sends (workspace_id, webhook_id, event_at, event_id);
create index webhook_sends_created on autopost.webhook_sends (workspace_id, created_at);

-- How far the events of a workspace were read: docs/decisions/0024-read-result-webhooks-from-events.md.
create table autopost.webhook_cursors (
	workspace_id text not null primary key references autopost.workspaces (workspace_id),
	done_at      timestamptz not null, -- every event before this time was read
	mark_xid     xid8 not null, -- transactions that began later wrote after mark_at
	mark_at      timestamptz not null,
	read_at      timestamptz not null, -- start of the last reading
	next_done_at timestamptz not null, -- done_at after the current reading
	position_at  timestamptz, -- last event of the current reading; null: not reading
	position_id  uuid
);
