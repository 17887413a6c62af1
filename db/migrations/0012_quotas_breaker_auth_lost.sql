-- +goose Up
-- What holds a channel or a rate group back beside its rate: quotas, an outage of the platform, a credential that was refused.

-- At most max_sends calls begin in any window_seconds: of one channel, or of all channels of a rate group together.
-- More than one window may hold for the same subject: an hour and a day.
create table autopost.quotas (
	workspace_id   text not null references autopost.workspaces (workspace_id),
	subject        text not null generated always as (
		case when channel_id is not null then 'channel:' || channel_id else 'group:' || platform || '/' || rate_group end) stored,
	window_seconds int not null check (window_seconds between 1 and 2678400),
	max_sends      int not null check (max_sends > 0),
	channel_id     text,
	platform       text references autopost.platforms (platform),
	rate_group     text,
	created_at     timestamptz not null default now(),
	updated_at     timestamptz not null default now(),
	primary key (workspace_id, subject, window_seconds),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade,
	check (case when channel_id is not null then platform is null and rate_group is null else platform is not null and rate_group is not null end)
);

-- What counts against quotas: a claim from its beginning, a call from when it began. A claim whose call never began is no use.
create table autopost.quota_uses (
	workspace_id text not null,
	delivery_id  uuid not null,
	attempt      int not null,
	subject      text not null,
	used_at      timestamptz not null, -- 'infinity' while the claim is open
	primary key (workspace_id, delivery_id, attempt, subject)
);
-- How much of a window is used, and when it frees: claim, gates.
create index quota_uses_subject on autopost.quota_uses (workspace_id, subject, used_at);

alter table autopost.deliveries add quota_held boolean not null default false; -- its present claim counts against a quota

alter table autopost.platform_limits
	add quota_until       timestamptz, -- the group's quota is used up until then
	add failing_channels  text[] not null default '{}', -- since the last post that was sent: whose call failed for reasons of the platform
	add breaker_opened_at timestamptz, -- the platform is taken to be down since then: one probe at a time
	add probe_id          uuid, -- the delivery that probes, or probed last
	add probe_at          timestamptz, -- no probe before
	add probes            int not null default 0;
-- Whether a post that was sent has something to end: commit.
create index platform_limits_failing on autopost.platform_limits (workspace_id) where failing_channels <> '{}';

alter table autopost.channels
	add auth_held    boolean not null default false, -- paused because its credential was refused
	add auth_lost_at timestamptz; -- when that was, the last time
-- Whose queues wait for a credential: monitor.
create index channels_auth_held on autopost.channels (workspace_id, channel_id) where auth_held;

insert into autopost.settings (key, value, meaning) values
	('quota_recheck_seconds', '600', 'what has used up its quota is looked at again after this long at most'),
	('breaker_channels', '3', 'channels of a rate group that fail one after another for reasons of the platform until its breaker opens'),
	('breaker_probe_seconds', '10', 'the first pause before a probe of an open breaker; each further one is twice as long'),
	('breaker_probe_cap_seconds', '300', 'the longest pause between two probes of an open breaker'),
	('auth_lost_hold_days', '7', 'how long deliveries wait for a refused credential before they are dead');

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.quotas', 'autopost.quota_uses']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

-- Channels with their gate and their group's limit, and what holds them back.
create or replace view autopost.list_channels with (security_invoker = true) as
select c.workspace_id, c.channel_id, c.platform, c.target_id, c.title, c.enabled, c.paused_until, c.cooldown_until, c.error_streak,
	coalesce(a.auth_ref, c.auth_ref) as auth_ref, c.rate_group, c.rate_rps, l.rate_rps as group_rate_rps, l.cooldown_until as group_cooldown_until,
	c.max_parallel, g.inflight, c.send_mode, c.tags, c.route_filter, c.settings, c.created_at, c.updated_at,
	c.auth_held, c.auth_lost_at, l.quota_until as group_quota_until, l.breaker_opened_at as group_breaker_opened_at
from autopost.channels c
join autopost.channel_gates g on g.workspace_id = c.workspace_id and g.channel_id = c.channel_id
left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
left join autopost.platform_limits l on l.workspace_id = c.workspace_id and l.platform = c.platform and l.rate_group = c.rate_group;
