-- +goose Up
-- Content, stored once: messages and their media.

create table autopost.messages (
	workspace_id          text not null references autopost.workspaces (workspace_id),
	message_id            uuid not null,
	hash_version          int not null default 1,
	content_hash          text not null,
	normalization_version int,
	payload               jsonb not null,
	tags                  text[] not null default '{}',
	source                jsonb,
	source_ref            text,
	first_seen_trace_id   uuid,
	first_ingest_run_id   uuid,
	last_seen_at          timestamptz not null default now(),
	last_ingest_run_id    uuid,
	seen_count            bigint not null default 1,
	created_at            timestamptz not null default now(),
	primary key (workspace_id, message_id),
	unique (workspace_id, hash_version, content_hash)
);
create index messages_created on autopost.messages (workspace_id, created_at);
create index messages_tags on autopost.messages using gin (tags);

create table autopost.media_origin (
	workspace_id text not null references autopost.workspaces (workspace_id),
	blob_ref     text not null check (blob_ref <> ''),
	origin_url   text not null,
	sha256       text,
	content_type text,
	size_bytes   bigint check (size_bytes >= 0),
	kind         text,
	width        int,
	height       int,
	last_seen_at timestamptz not null default now(),
	ref_count    bigint not null default 0,
	created_at   timestamptz not null default now(),
	deleted_at   timestamptz,
	primary key (workspace_id, blob_ref)
);

-- A platform's id for a content. It belongs to the credential that obtained it and to one kind of medium.
create table autopost.media_blobs (
	workspace_id text not null references autopost.workspaces (workspace_id),
	blob_ref     text not null,
	provider     text not null,
	auth_ref     text not null,
	kind         text not null,
	file_id      text,
	url          text,
	expires_at   timestamptz,
	meta         jsonb,
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, blob_ref, provider, auth_ref, kind)
);
