-- +goose Up
-- Monitor: alerts and their notices, duties, the clock of the database.

-- At most one open alert per kind and subject. An alert with a look ends after alert_calm_seconds without
-- a finding of that look.
create table autopost.alerts (
	workspace_id     text not null references autopost.workspaces (workspace_id),
	alert_id         uuid not null,
	kind             text not null check (kind <> ''),
	subject          text not null, -- "credential:bot"
	raised_at        timestamptz not null,
	ended_at         timestamptz,
	error            jsonb,
	meta             jsonb not null default '{}',
	severity         text not null default 'error' check (severity in ('warning', 'error', 'critical')),
	what             text not null default '',
	remedy           text not null default '',
	amount           numeric not null default 1, -- in the unit of the kind
	-- null: the function that raised it ends it
	look             text check (look in ('workspace', 'installation', 'integrity')),
	calm_since       timestamptz,
	acknowledged_at  timestamptz,
	acknowledged_by  text,
	last_notified_at timestamptz,
	primary key (workspace_id, alert_id)
);
create unique index alerts_open on autopost.alerts (workspace_id, kind, subject) where ended_at is null;
create index alerts_acknowledged on autopost.alerts (workspace_id, kind, acknowledged_at)
	where acknowledged_at is not null;
create index alerts_ended on autopost.alerts (workspace_id, ended_at) where ended_at is not null;

create table autopost.alert_targets (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	target_id       text not null check (target_id <> ''),
	kind            text not null check (kind in ('telegram', 'max', 'email', 'webhook')),
	address         text not null check (address <> ''), -- chat, mail address or https address
	auth_ref        text, -- of the bot or the mail user, or the signing key
	enabled         boolean not null,
	min_severity    text not null check (min_severity in ('warning', 'error', 'critical')),
	kinds           text[], -- null: alerts of every kind
	-- "22:00-07:30", every day
	quiet_hours     text check (quiet_hours ~ '^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$'),
	timezone        text not null,
	quiet_critical  boolean not null, -- critical alerts come in quiet hours too
	-- smallest pause between messages, unless critical
	digest_minutes  int not null check (digest_minutes between 0 and 1440),
	daily_limit     int not null check (daily_limit between 1 and 1000), -- messages in any 24 hours
	health_at       text check (health_at ~ '^([01]\d|2[0-3]):[0-5]\d$'), -- time of the daily health snapshot
	health_on_alert boolean not null, -- alerts include the health snapshot
	health_next_at  timestamptz,
	told_at         timestamptz, -- last sent message
	next_try_at     timestamptz not null,
	failures        int not null default 0, -- in a row
	last_error      jsonb,
	created_at      timestamptz not null,
	updated_at      timestamptz not null,
	confirmed_at    timestamptz, -- null: a mail address whose reader has not asked for alerts yet; it gets none
	primary key (workspace_id, target_id),
	check (kind = 'email' or confirmed_at is not null)
);

-- Messages to alert targets. A target has at most one open message.
create table autopost.alert_messages (
	workspace_id text not null,
	message_id   uuid not null,
	target_id    text not null,
	kind         text not null check (kind in ('alerts', 'health', 'test', 'confirm')),
	status       text not null check (status in ('pending', 'sending', 'sent', 'failed', 'unknown')),
	attempt      int not null default 0,
	claim_token  text,
	lease_until  timestamptz,
	leased_by    text, -- run id of the daemon that sends it
	subject      text not null,
	text         text not null,
	body         jsonb not null, -- for programs
	tells        jsonb not null default '[]', -- [{"alert_id", "told", "amount"}]
	created_at   timestamptz not null,
	ended_at     timestamptz,
	error        jsonb,
	primary key (workspace_id, message_id),
	foreign key (workspace_id, target_id) references autopost.alert_targets (workspace_id, target_id) on delete cascade,
	check ((status = 'sending') = (claim_token is not null and lease_until is not null))
);
create unique index alert_messages_open on autopost.alert_messages (workspace_id, target_id)
	where status in ('pending', 'sending');
create index alert_messages_ended on autopost.alert_messages (workspace_id, target_id, ended_at)
	where status not in ('pending', 'sending');

-- The last notice of an alert to a target.
create table autopost.alert_notices (
	workspace_id text not null,
	target_id    text not null,
	alert_id     uuid not null,
	told_at      timestamptz not null,
	amount       numeric not null, -- of the notice
	resolved     boolean not null default false,
	primary key (workspace_id, target_id, alert_id),
	foreign key (workspace_id, target_id) references autopost.alert_targets (workspace_id, target_id) on delete cascade,
	foreign key (workspace_id, alert_id) references autopost.alerts (workspace_id, alert_id) on delete cascade
);
create index alert_notices_open on autopost.alert_notices (workspace_id, target_id) where not resolved;
create index alert_notices_alert on autopost.alert_notices (workspace_id, alert_id);

-- The last result of each duty of each monitor.
create table autopost.monitor_duties (
	run_id      text not null,
	duty        text not null check (duty <> ''),
	reported_at timestamptz not null,
	done_at     timestamptz, -- last success
	failures    int not null default 0, -- in a row
	error       text,
	skew_ms     bigint not null, -- clock of the daemon minus clock of the database
	config      text not null, -- digest of the values that all daemons must share
	primary key (run_id, duty)
);

-- Daemons compare their monotonic clocks with the clock of the database.
create table autopost.clock_observers (
	observer     text primary key,
	seen_at      timestamptz not null, -- clock of the database at the last observation
	trusted_from timestamptz not null -- leases may end by the database's clock from then on
);

-- The cluster that may send, in one row: a database in another cluster is a restored copy. No
-- workspace_id: it describes the installation.
create table autopost.cluster_identity (
	only_row          boolean primary key default true check (only_row),
	system_identifier text not null,
	noticed_at        timestamptz, -- a daemon first saw the restored copy
	confirmed_at      timestamptz -- an operator last let a copy send
);

create table autopost.clock_jumps (
	jump_id     uuid primary key,
	observed_at timestamptz not null, -- by the clock after the jump
	jump        interval not null,
	observer    text not null
);

-- Jumps that the times of a workspace do not follow yet.
create table autopost.clock_debts (
	workspace_id text not null references autopost.workspaces on delete cascade,
	jump_id      uuid not null,
	jump         interval not null,
	primary key (workspace_id, jump_id)
);

-- Row of verify: one per invariant, with at most five offending rows. violations = 0: the invariant holds.
create type autopost.verify_finding as (
	invariant  text,
	title      text,
	violations bigint,
	sample     jsonb
);
