-- +goose Up
-- An alert says what is wrong and what to do about it, and goes to those who want to know.

-- An alert that a look has raised is ended by the same look, once what it saw has been over for alert_calm_seconds.
alter table autopost.alerts
	add severity text not null default 'error' check (severity in ('warning', 'error', 'critical')),
	add what text not null default '',
	add remedy text not null default '',
	add amount numeric not null default 1, -- how much of it there is, in the unit of its kind
	add look text check (look in ('workspace', 'installation', 'integrity')), -- null: whoever raised it ends it
	add calm_since timestamptz,
	add acknowledged_at timestamptz,
	add acknowledged_by text,
	add last_notified_at timestamptz;
create index alerts_acknowledged on autopost.alerts (workspace_id, kind, acknowledged_at) where acknowledged_at is not null;
create index alerts_ended on autopost.alerts (workspace_id, ended_at) where ended_at is not null;

create table autopost.alert_targets (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	target_id       text not null check (target_id <> ''),
	kind            text not null check (kind in ('telegram', 'max', 'email', 'webhook')),
	address         text not null check (address <> ''), -- chat, mail address or https address
	auth_ref        text, -- of the bot, of the mail server's user, or what signs
	enabled         boolean not null,
	min_severity    text not null check (min_severity in ('warning', 'error', 'critical')),
	kinds           text[], -- null: alerts of every kind
	quiet_hours     text check (quiet_hours ~ '^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$'), -- "22:00-07:30", every day
	timezone        text not null,
	quiet_critical  boolean not null, -- whether critical ones come in quiet hours too
	digest_minutes  int not null check (digest_minutes between 0 and 1440), -- the others at most so often
	daily_limit     int not null check (daily_limit between 1 and 1000), -- messages in any 24 hours
	health_at       text check (health_at ~ '^([01]\d|2[0-3]):[0-5]\d$'), -- when the health snapshot comes, every day
	health_on_alert boolean not null, -- whether it comes along with what is new
	health_next_at  timestamptz,
	told_at         timestamptz, -- the last message that went out
	next_try_at     timestamptz not null,
	failures        int not null default 0, -- in a row
	last_error      jsonb,
	created_at      timestamptz not null,
	updated_at      timestamptz not null,
	primary key (workspace_id, target_id)
);

-- Messages to targets. The one that is under way is the only one of its target.
create table autopost.alert_messages (
	workspace_id text not null,
	message_id   uuid not null,
	target_id    text not null,
	kind         text not null check (kind in ('alerts', 'health', 'test')),
	status       text not null check (status in ('pending', 'sending', 'sent', 'failed', 'unknown')),
	attempt      int not null default 0,
	claim_token  text,
	lease_until  timestamptz,
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
create unique index alert_messages_open on autopost.alert_messages (workspace_id, target_id) where status in ('pending', 'sending');
create index alert_messages_ended on autopost.alert_messages (workspace_id, target_id, ended_at) where status not in ('pending', 'sending');

-- What a target has been told of an alert.
create table autopost.alert_notices (
	workspace_id text not null,
	target_id    text not null,
	alert_id     uuid not null,
	told_at      timestamptz not null,
	amount       numeric not null, -- as it was told
	resolved     boolean not null default false,
	primary key (workspace_id, target_id, alert_id),
	foreign key (workspace_id, target_id) references autopost.alert_targets (workspace_id, target_id) on delete cascade,
	foreign key (workspace_id, alert_id) references autopost.alerts (workspace_id, alert_id) on delete cascade
);
create index alert_notices_open on autopost.alert_notices (workspace_id, target_id) where not resolved;
create index alert_notices_alert on autopost.alert_notices (workspace_id, alert_id);

-- What each duty of each monitor came to when it was done last.
create table autopost.monitor_duties (
	run_id      text not null,
	duty        text not null check (duty <> ''),
	reported_at timestamptz not null,
	done_at     timestamptz, -- the last time that it could be done
	failures    int not null default 0, -- in a row
	error       text,
	skew_ms     bigint not null, -- the daemon's clock before the database's
	config      text not null, -- digest of what daemons should agree on
	primary key (run_id, duty)
);

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.alert_targets', 'autopost.alert_messages', 'autopost.alert_notices']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

-- A look every minute must not read the history.
create index channels_paused on autopost.channels (workspace_id, paused_until) where paused_until is not null;
create index deliveries_unknown on autopost.deliveries (workspace_id, updated_at) where status = 'failed_permanent' and outcome_unknown_at is not null;

insert into autopost.settings (key, value, default_value, meaning)
select s.key, s.value, s.value, s.meaning
from (values
	('operator_workspace', '""'::jsonb, 'workspace whose targets are told what concerns the whole installation; empty: the oldest one'),
	('alert_dead_threshold', '1', 'from how many dead deliveries on people are told; as of all alert_ thresholds, 0 for never'),
	('alert_dead_many', '1000', 'from how many dead deliveries on it is critical'),
	('alert_failed_perm_10m', '20', 'people are told when more deliveries than this failed for good in the last 10 minutes'),
	('alert_paused_channels', '10', 'people are told when more channels than this are paused'),
	('alert_oldest_due_seconds', '1800', 'for how long a delivery may be due while nothing holds it before people are told'),
	('alert_unknown_waiting', '1', 'from how many unknown outcomes that wait for a person on people are told'),
	('alert_moderation_backlog', '100', 'from how many posts that wait for a decision on people are told'),
	('alert_source_failures', '5', 'after how many failed polls in a row people are told of a source'),
	('alert_breaker_seconds', '600', 'for how long a rate group may be stopped by its breaker before people are told'),
	('alert_daemon_silence_seconds', '180', 'after how many seconds without a heartbeat of any dispatcher people are told'),
	('alert_duty_failures', '3', 'after how many failures in a row people are told of a duty of the monitor'),
	('alert_clock_skew_ms', '2000', 'how far the clocks of a daemon and of the database may differ before people are told'),
	('alert_calm_seconds', '120', 'how long what an alert saw must be over before it ends'),
	('alert_remind_hours', '24', 'after how many hours people are reminded of an alert that is open and not acknowledged; 0 for never'),
	('alert_retention_days', '90', 'how long alerts that are over and messages to targets are kept'),
	('alert_lease_seconds', '120', 'how long a daemon has for a message to a target')) s (key, value, meaning);

create or replace view autopost.list_alerts with (security_invoker = true) as
select a.workspace_id, a.alert_id, a.kind, a.subject, a.raised_at, a.ended_at, a.error, a.meta,
	a.severity, a.what, a.remedy, a.amount, a.acknowledged_at, a.acknowledged_by, a.last_notified_at
from autopost.alerts a;
