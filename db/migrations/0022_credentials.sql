-- +goose Up
-- Secrets that the engine keeps itself, sealed by a key that the database never sees; how the credentials are; and what people must look at.

-- Each row is sealed (AES-256-GCM, over workspace, auth_ref and version) by a data key of its own, which the master key wraps.
create table autopost.sealed_secrets (
	workspace_id text not null,
	auth_ref     text not null,
	version      int not null check (version > 0),
	key_id       text not null check (key_id <> ''), -- of the master key
	wrapped_key  bytea not null,
	sealed       bytea not null,
	source       text not null, -- digest of the first secret (env:, file:) that it was renewed from; '' where there is none
	made_by      text not null check (made_by in ('set', 'link', 'refresh')),
	created_at   timestamptz not null,
	retired_at   timestamptz, -- another one is in force since then
	primary key (workspace_id, auth_ref, version),
	foreign key (workspace_id, auth_ref) references autopost.credential_bindings (workspace_id, auth_ref) on delete cascade
);
create unique index sealed_secrets_in_force on autopost.sealed_secrets (workspace_id, auth_ref) where retired_at is null;

-- How a credential is. A trigger on credential_bindings keeps one row for each.
create table autopost.credential_health (
	workspace_id    text not null,
	auth_ref        text not null,
	last_version    int not null default 0, -- of sealed_secrets; counts on when the secret is kept elsewhere
	valid_until     timestamptz, -- of the secret in force, where it is known
	refreshed_at    timestamptz,
	next_refresh_at timestamptz, -- null: nobody renews it by itself
	failures        int not null default 0, -- renewals that failed in a row
	lease_token     text, -- of who renews it now
	lease_until     timestamptz,
	checked_at      timestamptz,
	account         text, -- who the platform says it is
	rights          jsonb not null default '[]', -- [{"target", "title", "may_post", "reason"}]
	error           jsonb, -- of the last check or renewal
	lost_at         timestamptz, -- the platform refuses it since then
	lost_version    int, -- which secret it refused: 0 is the first one, of this digest
	lost_source     text,
	warned_until    timestamptz, -- the valid_until of which people were warned
	primary key (workspace_id, auth_ref),
	foreign key (workspace_id, auth_ref) references autopost.credential_bindings (workspace_id, auth_ref) on delete cascade
);
create index credential_health_due on autopost.credential_health (workspace_id, next_refresh_at) where next_refresh_at is not null and lost_at is null;

-- What people must look at: at most one open row of a kind and a subject.
create table autopost.alerts (
	workspace_id text not null references autopost.workspaces (workspace_id),
	alert_id     uuid not null,
	kind         text not null check (kind <> ''),
	subject      text not null, -- "credential:bot"
	raised_at    timestamptz not null,
	ended_at     timestamptz,
	error        jsonb,
	meta         jsonb not null default '{}',
	primary key (workspace_id, alert_id)
);
create unique index alerts_open on autopost.alerts (workspace_id, kind, subject) where ended_at is null;

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.sealed_secrets', 'autopost.credential_health', 'autopost.alerts']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

insert into autopost.credential_health (workspace_id, auth_ref)
select b.workspace_id, b.auth_ref from autopost.credential_bindings b;

insert into autopost.settings (key, value, meaning) values
	('auth_refresh_ahead_seconds', '600', 'how long before it expires a credential is renewed; never before two thirds of its life are over'),
	('auth_refresh_lease_seconds', '60', 'how long one daemon has for the renewal of a credential'),
	('auth_warn_days', '7', 'how long before it expires people are warned of a credential that nobody renews by itself'),
	('auth_keep_replaced_hours', '24', 'how long a sealed secret is kept after another one took its place');

-- The list of actions grows. What was written before was held to the narrower one, so that no row needs to be read.
alter table autopost.events drop constraint events_action_check;
alter table autopost.events add constraint events_action_check check (action in (
	'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed', 'failed_permanent',
	'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled', 'message_tag_mismatch',
	'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated', 'ingress_rate_limited',
	'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error', 'unknown_outcome', 'unknown_resolved',
	'released', 'cooldown', 'breaker', 'submission_failed', 'stale_commit', 'manual_skip',
	'auth_lost', 'auth_refreshed', 'auth_expiring')) not valid;

-- Credentials without their secrets.
create view autopost.list_credentials with (security_invoker = true) as
select b.workspace_id, b.auth_ref, b.platform, split_part(b.secret_ref, ':', 1) as kept, s.version, s.key_id as master_key_id,
	h.valid_until, h.refreshed_at, h.next_refresh_at, h.failures, h.checked_at, h.account, h.rights, h.error, h.lost_at, b.rotated_at, b.updated_at,
	(select count(*) from autopost.channels c
		left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = b.workspace_id and c.platform = b.platform and coalesce(a.auth_ref, c.auth_ref) = b.auth_ref) as channels
from autopost.credential_bindings b
left join autopost.credential_health h on h.workspace_id = b.workspace_id and h.auth_ref = b.auth_ref
left join autopost.sealed_secrets s on s.workspace_id = b.workspace_id and s.auth_ref = b.auth_ref and s.retired_at is null;

create view autopost.list_alerts with (security_invoker = true) as
select a.workspace_id, a.alert_id, a.kind, a.subject, a.raised_at, a.ended_at, a.error, a.meta from autopost.alerts a;
