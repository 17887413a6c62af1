-- +goose Up
-- File jobs: what folders ask to publish, and the files that were refused.

-- The ledger of file jobs. A job is published at most once on a platform, for ever: no row expires.
create table autopost.publish_jobs (
	workspace_id     text not null references autopost.workspaces (workspace_id),
	job_id           text not null check (job_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
	platform         text not null references autopost.platforms (platform),
	source_id        text not null,
	status           text not null check (status in ('waiting', 'approved', 'publishing', 'published', 'rejected',
		'failed', 'unknown')),
	payload          jsonb, -- the payload file; null: not seen yet
	payload_digest   text check (payload_digest ~ '^sha256:[0-9a-f]{64}$'), -- of the payload file
	artifacts        jsonb not null default '{}', -- {"video": {"path", "blob_ref", "size", "modified"}, …}
	digest           text check (digest ~ '^[0-9a-f]{64}$'), -- of payload and artifacts; null: incomplete
	prepared         jsonb, -- the payload that the engine writes as a file
	prepared_by      text, -- identity of the person that gave it
	submission_id    uuid,
	delivery_id      uuid,
	doubt            jsonb, -- an unreadable state file: {"digest", "reason", "asked", "asked_at"}
	error            jsonb,
	platform_post_id text,
	post_url         text,
	published_at     timestamptz,
	imported         boolean not null default false, -- published by something else: a state file says so
	files_at         timestamptz, -- the updated_at that the files in the folder show
	created_at       timestamptz not null,
	updated_at       timestamptz not null,
	primary key (workspace_id, job_id, platform),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id),
	constraint publish_jobs_published check ((status = 'published') = (published_at is not null)
		and (status = 'published') = (platform_post_id is not null)),
	constraint publish_jobs_approved check (status not in ('approved', 'publishing') or digest is not null),
	constraint publish_jobs_publishing check (status <> 'publishing' or submission_id is not null),
	constraint publish_jobs_imported check (not imported or status = 'published'),
	constraint publish_jobs_doubt check (status <> 'unknown' or doubt is not null or delivery_id is not null)
);
-- Jobs with work for the engine: to start, to follow, or with files to write.
create index publish_jobs_open on autopost.publish_jobs (workspace_id, source_id)
	where status in ('approved', 'publishing', 'unknown', 'failed') or files_at is distinct from updated_at
	or prepared is not null;
create index publish_jobs_status on autopost.publish_jobs (workspace_id, status);
create unique index publish_jobs_delivery on autopost.publish_jobs (workspace_id, delivery_id)
	where delivery_id is not null;
-- Media that waiting jobs keep.
create index publish_jobs_kept on autopost.publish_jobs (workspace_id, job_id)
	where status not in ('published', 'rejected');

-- Folders, for due_stages.
create index pull_sources_files on autopost.pull_sources (workspace_id, source_id) where kind = 'filebus' and enabled;

-- Files that were refused. Each content of a file is reported once.
create table autopost.file_refusals (
	workspace_id text not null,
	source_id    text not null,
	path         text not null,
	digest       text not null, -- of the content, or of what is wrong with the name
	reason       text not null,
	refused_at   timestamptz not null,
	primary key (workspace_id, source_id, path),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id) on delete cascade
);

-- +goose StatementBegin
do $$
declare
	v_table text;
begin
	foreach v_table in array array['publish_jobs', 'file_refusals'] loop
		execute format('alter table autopost.%I enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on autopost.%I
			using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on autopost.%I to autopost_owner
			using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd
