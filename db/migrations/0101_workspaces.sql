-- +goose Up
-- Workspaces, roles, people, keys of the API, and the audit log.

create table autopost.workspaces (
	workspace_id text not null primary key check (workspace_id <> '' and workspace_id <> '*'),
	name         text not null default '',
	-- active: takes and sends posts. paused: takes posts, sends nothing. disabled: refuses posts.
	status       text not null default 'active' check (status in ('active', 'paused', 'disabled')),
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	-- Approvals by different people that a moderated post needs.
	approvals_needed int not null default 1 check (approvals_needed in (1, 2))
);

-- The workspaces ('*' = all) of a login role and of its members.
create table autopost.role_workspaces (
	role_name    text not null,
	workspace_id text not null,
	created_at   timestamptz not null default now(),
	primary key (role_name, workspace_id)
);
insert into autopost.role_workspaces (role_name, workspace_id)
values ('autopost_owner', '*'), ('autopost_engine', '*');

-- Finds the workspace of a secret by its hash. Triggers on the tables with secrets write it.
create table autopost.secret_lookup (
	kind         text not null check (kind in ('webhook_push', 'bot_webhook', 'api_key')),
	secret_hash  text not null check (secret_hash ~ '^[0-9a-f]{64}$'),
	workspace_id text not null,
	subject_id   text not null,
	primary key (kind, secret_hash)
);
create index secret_lookup_subject on autopost.secret_lookup (workspace_id, kind, subject_id);

create table autopost.api_keys (
	workspace_id text not null references autopost.workspaces (workspace_id),
	key_id       uuid not null,
	name         text not null check (name <> ''),
	role         text not null check (role in ('viewer', 'editor', 'approver', 'operator', 'owner')),
	secret_hash  text not null check (secret_hash ~ '^[0-9a-f]{64}$'),
	enabled      boolean not null default true,
	created_at   timestamptz not null default now(),
	scopes       text[] not null default '{}', -- "RESOURCE:read" or "RESOURCE:write"; empty: all that the role may do
	expires_at   timestamptz,
	last_used_at timestamptz, -- exact to the hour
	replaced_by  uuid, -- the key that replaced it by rotation
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, key_id)
);

-- People. They belong to the installation; memberships give them roles in workspaces.
create table autopost.users (
	user_id            uuid not null primary key,
	email              text not null unique check (email = lower(email) and email <> ''),
	name               text not null check (name <> ''),
	password_hash      text, -- argon2id in its encoded form; null: no sign-in by password
	language           text not null default '', -- of the pages; empty: that of the browser
	installation_owner boolean not null default false, -- changes settings and creates workspaces
	enabled            boolean not null default true,
	created_at         timestamptz not null default now(),
	updated_at         timestamptz not null default now()
);

create table autopost.memberships (
	workspace_id text not null references autopost.workspaces (workspace_id),
	user_id      uuid not null references autopost.users (user_id),
	role         text not null check (role in ('viewer', 'editor', 'approver', 'operator', 'owner')),
	created_at   timestamptz not null default now(),
	primary key (workspace_id, user_id)
);
create index memberships_user on autopost.memberships (user_id);

-- Links that make a person a member. A used or revoked one is removed.
create table autopost.invitations (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	invitation_id uuid not null,
	email         text not null check (email = lower(email) and email <> ''),
	role          text not null check (role in ('viewer', 'editor', 'approver', 'operator', 'owner')),
	token_hash    text not null check (token_hash ~ '^[0-9a-f]{64}$'),
	invited_by    text not null,
	created_at    timestamptz not null,
	expires_at    timestamptz not null,
	primary key (workspace_id, invitation_id),
	unique (workspace_id, email)
);
create index invitations_token on autopost.invitations (token_hash);

-- Links for the first person. They work while there are no users.
create table autopost.first_links (
	token_hash text not null primary key check (token_hash ~ '^[0-9a-f]{64}$'),
	expires_at timestamptz not null
);

-- Sessions of the pages by the SHA-256 of their token.
create table autopost.sessions (
	token_hash   text not null primary key check (token_hash ~ '^[0-9a-f]{64}$'),
	session_id   uuid not null unique,
	user_id      uuid not null references autopost.users (user_id),
	created_at   timestamptz not null,
	last_seen_at timestamptz not null, -- exact to the minute
	confirmed_at timestamptz not null, -- last check of the password
	expires_at   timestamptz not null
);
create index sessions_user on autopost.sessions (user_id);
create index sessions_expiry on autopost.sessions (expires_at);

-- Answers of API writes by caller and Idempotency-Key. A repeated request gets the same answer.
create table autopost.api_requests (
	workspace_id    text not null,
	key_id          uuid not null, -- of an API key, or of the person of a session
	idempotency_key text not null check (idempotency_key <> ''),
	request_hash    text not null check (request_hash ~ '^[0-9a-f]{64}$'),
	answer          jsonb not null,
	created_at      timestamptz not null,
	expires_at      timestamptz not null,
	primary key (workspace_id, key_id, idempotency_key)
);
create index api_requests_expiry on autopost.api_requests (workspace_id, expires_at);

-- Operator actions. Append-only: triggers refuse updates, truncation and early removal.
create table autopost.admin_audit_log (
	workspace_id text not null references autopost.workspaces (workspace_id),
	id           uuid not null, -- sorts by time
	ts           timestamptz not null,
	operator     text not null check (operator <> ''),
	action       text not null check (action <> ''), -- name of the SQL function
	reason       text not null check (reason <> ''),
	subject      text not null, -- "channel:news", "group:telegram/bot", "deliveries"
	before       jsonb not null, -- changed fields by row id, old values
	after        jsonb not null, -- changed fields by row id, new values
	seq          bigint not null,
	prev_hash    text not null, -- hash of the row before: the rows of a workspace form a chain
	hash         text not null,
	login        text not null default session_user, -- database role of the session; operator is only what it states
	primary key (workspace_id, id),
	unique (workspace_id, seq)
);
create index admin_audit_log_subject on autopost.admin_audit_log (workspace_id, subject, id);
create index admin_audit_log_action on autopost.admin_audit_log (workspace_id, action, id);
create index admin_audit_log_operator on autopost.admin_audit_log (workspace_id, operator, id);

-- Both ends of a workspace's chain: the newest row, and the last row that retention removed.
create table autopost.audit_heads (
	workspace_id text not null primary key references autopost.workspaces (workspace_id),
	seq          bigint not null default 0,
	hash         text not null default repeat('0', 64),
	base_seq     bigint not null default 0,
	base_hash    text not null default repeat('0', 64)
);

-- Digest of the installed views and functions; one row.
create table autopost.installed_functions (
	digest text not null primary key
);
