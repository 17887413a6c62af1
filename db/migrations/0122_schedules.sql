-- +goose Up
-- Schedules: drafts, and posts that repeat.

-- Posts that a person still writes. A submitted one stays for receipt_ttl_hours, for repeated submits.
create table autopost.drafts (
	workspace_id text not null references autopost.workspaces (workspace_id),
	draft_id     uuid not null,
	author       text not null check (author <> ''), -- identity of the person; nobody else sees the draft
	endpoint_id  text, -- of the post; null: the only enabled one
	payload      jsonb not null check (jsonb_typeof(payload) = 'object'), -- finished or not
	version      int not null default 1, -- grows with each change
	created_at   timestamptz not null,
	updated_at   timestamptz not null,
	submitted_at timestamptz,
	answer       jsonb, -- of the submit
	primary key (workspace_id, draft_id),
	constraint drafts_submitted check ((submitted_at is null) = (answer is null))
);
create index drafts_open on autopost.drafts (workspace_id, author, draft_id desc) where submitted_at is null;
create index drafts_final on autopost.drafts (workspace_id, submitted_at) where submitted_at is not null;
-- Their media must stay.
create index drafts_media on autopost.drafts using gin ((payload -> 'media') jsonb_path_ops) where submitted_at is null;

-- Posts that repeat. The daemon expands the rule into local times; SQL makes instants and posts of them.
create table autopost.recurrences (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	recurrence_id uuid not null,
	endpoint_id   text not null,
	rule          text not null, -- of RFC 5545, without DTSTART
	zone          text not null,
	starts_at     timestamp not null, -- in the zone
	payloads      jsonb not null check (jsonb_typeof(payloads) = 'array' and jsonb_array_length(payloads) between 1 and 50),
	enabled       boolean not null default true,
	taken         int not null default 0, -- posts made so far; the next one has payload taken modulo their number
	revision      int not null default 1, -- of rule, zone and start
	expanded_to   timestamp not null, -- in the zone: occurrences until then are stored; infinity: all
	expand_at     timestamptz not null, -- when the rule is expanded next
	next_at       timestamptz not null, -- when the stage has something to do
	last_error    jsonb, -- of the expansion
	author        text not null, -- who changed it last
	created_at    timestamptz not null,
	updated_at    timestamptz not null,
	primary key (workspace_id, recurrence_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
);
create index recurrences_due on autopost.recurrences (workspace_id, next_at) where enabled;

create table autopost.occurrences (
	workspace_id  text not null,
	occurrence_id uuid not null,
	recurrence_id uuid not null,
	local_at      timestamp not null, -- by the rule, in the zone
	at            timestamptz not null,
	status        text not null default 'expected' check (status in ('expected', 'enqueued', 'skipped')),
	moved         boolean not null default false, -- a person chose the instant
	message_id    uuid,
	submission_id uuid, -- while its media are fetched or a decision is missing
	reason        text check (reason in ('missed', 'paused', 'person', 'rejected')), -- of a skipped one
	error         jsonb, -- of a rejected one
	updated_at    timestamptz not null,
	primary key (workspace_id, occurrence_id),
	unique (workspace_id, recurrence_id, local_at),
	foreign key (workspace_id, recurrence_id) references autopost.recurrences (workspace_id, recurrence_id)
		on delete cascade,
	constraint occurrences_skipped check ((status = 'skipped') = (reason is not null)),
	constraint occurrences_enqueued check ((status = 'enqueued') = (coalesce(message_id, submission_id) is not null))
);
create index occurrences_at on autopost.occurrences (workspace_id, at);
create index occurrences_expected on autopost.occurrences (workspace_id, recurrence_id, at) where status = 'expected';
create index occurrences_final on autopost.occurrences (workspace_id, updated_at) where status <> 'expected';

-- +goose StatementBegin
do $$
declare
	v_table text;
begin
	foreach v_table in array array['drafts', 'recurrences', 'occurrences'] loop
		execute format('alter table autopost.%I enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on autopost.%I
			using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on autopost.%I to autopost_owner
			using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd
