-- +goose Up
-- Messages, media, and fan-out.

-- The content of a post, stored once per workspace.
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
alter table autopost.messages alter column workspace_id set statistics 0; -- as channels

-- Media of a workspace in the media store.
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
	ref_count    bigint not null default 0, -- messages that refer to it
	created_at   timestamptz not null default now(),
	deleted_at   timestamptz,
	hashed       boolean not null default true, -- false: registered by a caller; the engine has not hashed the object
	primary key (workspace_id, blob_ref)
);
create index media_origin_not_hashed on autopost.media_origin (blob_ref) where not hashed;
create index media_origin_seen on autopost.media_origin (workspace_id, last_seen_at, blob_ref);

-- Media of each message. A trigger on messages writes it.
create table autopost.message_media (
	workspace_id text not null,
	message_id   uuid not null,
	blob_ref     text not null,
	primary key (workspace_id, message_id, blob_ref),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id) on delete cascade
);
create index message_media_ref on autopost.message_media (workspace_id, blob_ref);

-- The words of each message for the search, see search_words.sql. A trigger on messages writes it. It is a table
-- because row security of messages keeps the operator @@ away from an index; search_policy in
-- 0111_row_security.sql opens these rows to our functions.
create table autopost.message_words (
	workspace_id text not null,
	message_id   uuid not null,
	words        tsvector not null,
	primary key (workspace_id, message_id),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id) on delete cascade
);
-- A search reads the pending entries one by one, so they stay few.
create index message_words_search on autopost.message_words using gin (words) with (gin_pending_list_limit = 256);
alter table autopost.message_words alter column workspace_id set statistics 0; -- as channels

-- The platform's id of an uploaded medium, or the URL that the platform may fetch instead. It is valid only
-- for one credential and one kind of medium.
create table autopost.media_blobs (
	workspace_id text not null references autopost.workspaces (workspace_id),
	blob_ref     text not null,
	provider     text not null,
	auth_ref     text not null,
	kind         text not null,
	file_id      text,
	url          text, -- the source URL, where the upload policy allows to send it; only without file_id
	expires_at   timestamptz,
	meta         jsonb,
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, blob_ref, provider, auth_ref, kind),
	check (file_id is null or url is null),
	check (url is null or expires_at is not null)
);
create index media_blobs_urls on autopost.media_blobs (workspace_id, expires_at) where url is not null;

-- Content whose removal from the media store is running. It cannot be registered meanwhile; otherwise a
-- row could outlive its object. No workspace_id: workspaces share objects.
create table autopost.media_removals (
	blob_ref text not null primary key check (blob_ref <> ''),
	token    text not null,
	begun_at timestamptz not null
);

-- The fan-out of a post to more channels than one transaction takes: done in ranges of channels.
create table autopost.fanout_jobs (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	job_id          uuid not null, -- sorts by time; enqueue_batch_id of its deliveries
	message_id      uuid not null,
	run_id          uuid not null,
	trace_id        uuid not null,
	status          text not null default 'running' check (status in ('running', 'done')),
	post            jsonb, -- the post as it was when the job started; null when done
	position        text not null default '', -- the last processed channel_id
	planned         int not null check (planned >= 0), -- channels that the routing found when the job started
	enqueued        int not null default 0,
	deduped         int not null default 0,
	invalid         int not null default 0,
	skipped         int not null default 0,
	attempt         int not null default 0, -- failures of the current range in a row
	next_attempt_at timestamptz not null default now(),
	last_error      jsonb,
	created_at      timestamptz not null default now(),
	updated_at      timestamptz not null default now(),
	finished_at     timestamptz,
	primary key (workspace_id, job_id),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id) on delete cascade,
	check ((status = 'running') = (post is not null)),
	check ((status = 'done') = (finished_at is not null))
);
create index fanout_jobs_running on autopost.fanout_jobs (workspace_id, job_id) where status = 'running';
create index fanout_jobs_run on autopost.fanout_jobs (workspace_id, run_id);
create index fanout_jobs_message on autopost.fanout_jobs (workspace_id, message_id);
