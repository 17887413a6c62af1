-- +goose Up
-- Tenants, who may speak for them, and the values that functions decide by.

create table autopost.workspaces (
	workspace_id text not null primary key check (workspace_id <> '' and workspace_id <> '*'),
	name         text not null default '',
	-- active: served. paused: takes posts in, sends nothing. disabled: refuses posts.
	status       text not null default 'active' check (status in ('active', 'paused', 'disabled')),
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now()
);

-- For which workspace ('*' = all) a login role, or a role it is a member of, may speak.
create table autopost.role_workspaces (
	role_name    text not null,
	workspace_id text not null,
	created_at   timestamptz not null default now(),
	primary key (role_name, workspace_id)
);
insert into autopost.role_workspaces (role_name, workspace_id)
values ('autopost_owner', '*'), ('autopost_engine', '*');

-- The values that functions decide by, for the whole installation. Units are part of the key.
create table autopost.settings (
	key        text not null primary key,
	value      jsonb not null,
	meaning    text not null,
	updated_at timestamptz not null default now()
);
insert into autopost.settings (key, value, meaning) values
	('sending_lease_seconds', '300', 'how long a claimed delivery may be in flight before it is recovered'),
	('claimed_lease_seconds', '300', 'how long a delivery may stay claimed without being sent'),
	('run_silence_seconds', '45', 'leases of a daemon without a heartbeat for this long are over'),
	('lease_margin_seconds', '10', 'a call must end this long before its lease does'),
	('max_attempts', '5', 'calls a delivery may start before it is dead, unless a retry policy says otherwise'),
	('pause_on_permanent_seconds', '3600', 'how long a channel pauses after a permanent failure of the channel'),
	('disable_after_permanent_streak', '3', 'permanent failures of a channel in a row that disable it'),
	('platform_cooldown_seconds', '60', 'how long a rate group rests after a permanent failure of the platform'),
	('limit_escalation_seconds', '10', 'two channels of a group limited inside this window make it the limit of the group'),
	('slot_horizon_ms', '1000', 'a rate slot is reserved at most this far ahead'),
	('slot_tolerance_ms', '100', 'a call later than this after its slot takes a new one'),
	('receipt_ttl_hours', '72', 'how long a repeated source_ref of a push is recognised'),
	('pull_receipt_ttl_hours', '2160', 'how long an item of a source is recognised when it reappears'),
	('submission_lease_seconds', '120', 'how long a worker may hold a submission'),
	('submission_max_attempts', '8', 'fetches of a submission''s media before it fails'),
	('pull_lease_seconds', '120', 'how long a daemon may hold a source that it polls'),
	('event_partition_days', '14', 'days of event partitions kept ready ahead');

-- Secrets that arrive before the workspace is known: hash -> workspace. Written at configuration time, by triggers only.
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
	primary key (workspace_id, key_id)
);

-- Which set of functions is installed: the digest of their source.
create table autopost.installed_functions (
	digest       text not null primary key,
	installed_at timestamptz not null default now()
);
