-- +goose Up
-- What people did by hand, and what it changed. Append-only: a trigger refuses the rest, whoever tries it.

create table autopost.admin_audit_log (
	workspace_id text not null references autopost.workspaces (workspace_id),
	id           uuid not null, -- sorts by time
	ts           timestamptz not null,
	operator     text not null check (operator <> ''),
	action       text not null check (action <> ''), -- the function that acted
	reason       text not null check (reason <> ''),
	subject      text not null, -- what it was about: "channel:news", "group:telegram/bot", "deliveries"
	before       jsonb not null, -- of each row that changed, by its id: what changed, as it was
	after        jsonb not null,
	primary key (workspace_id, id)
);

alter table autopost.admin_audit_log enable row level security, force row level security;
create policy workspace on autopost.admin_audit_log using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.admin_audit_log to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');
