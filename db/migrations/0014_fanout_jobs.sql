-- +goose Up
-- A post that goes to more channels than one transaction should take: written with its message, worked off in ranges of channels.

create table autopost.fanout_jobs (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	job_id          uuid not null, -- sorts by time; enqueue_batch_id of its deliveries
	message_id      uuid not null,
	run_id          uuid not null,
	trace_id        uuid not null,
	status          text not null default 'running' check (status in ('running', 'done')),
	post            jsonb, -- what fan_out takes, as it was when the post came; nothing once done
	position        text not null default '', -- the last channel_id that was worked on
	planned         int not null check (planned >= 0), -- channels that the post was routed to when it came
	enqueued        int not null default 0,
	deduped         int not null default 0,
	invalid         int not null default 0,
	skipped         int not null default 0,
	attempt         int not null default 0, -- failures of the present range in a row
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
-- Which job of a workspace is next, and whether there is one.
create index fanout_jobs_running on autopost.fanout_jobs (workspace_id, job_id) where status = 'running';
-- How far a run has come.
create index fanout_jobs_run on autopost.fanout_jobs (workspace_id, run_id);
-- What goes with a message.
create index fanout_jobs_message on autopost.fanout_jobs (workspace_id, message_id);

alter table autopost.fanout_jobs enable row level security, force row level security;
create policy workspace on autopost.fanout_jobs using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.fanout_jobs to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');

insert into autopost.settings (key, value, meaning) values
	('fanout_chunk_channels', '2000', 'channels that one transaction fans a post out to; a post to more of them is worked off in such ranges');
