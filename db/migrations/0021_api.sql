-- +goose Up
-- What the API needs: keys that are narrowed, end and are replaced; answers kept for requests that are repeated; read models and their indexes.

alter table autopost.api_keys
	add column scopes       text[] not null default '{}', -- "<resource>:read" or "<resource>:write"; none: all that the role may do
	add column expires_at   timestamptz,
	add column last_used_at timestamptz, -- to the hour
	add column replaced_by  uuid,        -- the key that took its place
	add column updated_at   timestamptz not null default now();

-- What a write was answered, by the key that asked and its Idempotency-Key: the same request is told the same again.
create table autopost.api_requests (
	workspace_id    text not null,
	key_id          uuid not null,
	idempotency_key text not null check (idempotency_key <> ''),
	request_hash    text not null check (request_hash ~ '^[0-9a-f]{64}$'),
	answer          jsonb not null,
	created_at      timestamptz not null,
	expires_at      timestamptz not null,
	primary key (workspace_id, key_id, idempotency_key),
	foreign key (workspace_id, key_id) references autopost.api_keys (workspace_id, key_id)
);
create index api_requests_expiry on autopost.api_requests (workspace_id, expires_at);
alter table autopost.api_requests enable row level security, force row level security;
create policy workspace on autopost.api_requests using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.api_requests to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');

insert into autopost.settings (key, value, default_value, meaning) values
	('api_request_ttl_hours', '24', '24', 'how long a repeated Idempotency-Key of the API is told the first answer');

-- Lists of what is over, newest first. Each is written once, when a delivery ends or fails, and never on the way there.
create index deliveries_ended on autopost.deliveries (workspace_id, channel_id, delivery_id)
	where status in ('sent', 'deduped', 'failed_permanent', 'dead');
create index deliveries_unsent on autopost.deliveries (workspace_id, status, delivery_id)
	where status in ('deduped', 'failed_permanent', 'dead');
create index ingest_runs_kind on autopost.ingest_runs (workspace_id, kind, run_id);
create index ingest_runs_source on autopost.ingest_runs (workspace_id, source_id, run_id) where source_id is not null;
create index admin_audit_log_subject on autopost.admin_audit_log (workspace_id, subject, id);
create index admin_audit_log_action on autopost.admin_audit_log (workspace_id, action, id);
create index admin_audit_log_operator on autopost.admin_audit_log (workspace_id, operator, id);

-- Content with the beginning of its text.
create view autopost.list_messages with (security_invoker = true) as
select m.workspace_id, m.message_id, left(m.payload ->> 'text', 200) as excerpt, coalesce(jsonb_array_length(m.payload -> 'media'), 0) as media, m.tags,
	m.source_ref, m.content_hash, m.seen_count, m.first_ingest_run_id as run_id, m.created_at, m.last_seen_at
from autopost.messages m;

-- Requests and polls with their counts.
create view autopost.list_runs with (security_invoker = true) as
select r.workspace_id, r.run_id, r.kind, r.endpoint_id, r.source_id, r.started_at, r.finished_at, r.stats_json as stats
from autopost.ingest_runs r;

-- What people did by hand.
create view autopost.list_audit with (security_invoker = true) as
select a.workspace_id, a.id, a.seq, a.ts, a.operator, a.action, a.reason, a.subject, a.before, a.after, a.hash
from autopost.admin_audit_log a;

-- Keys of the API, never their secrets.
create view autopost.list_api_keys with (security_invoker = true) as
select k.workspace_id, k.key_id, k.name, k.role, k.scopes, k.enabled, k.expires_at, k.last_used_at, k.replaced_by, k.created_at
from autopost.api_keys k;
