-- +goose Up
-- A look for alerts reads what is wrong, not what is there.

-- A channel that is served but far behind. Noted by rearm_gates, which sees what is due in every channel; a gate that a claim moves keeps
-- it, and stays a heap-only update.
alter table autopost.channel_gates add late boolean not null default false;
create index channel_gates_late on autopost.channel_gates (workspace_id, channel_id) where late;

create index platform_limits_broken on autopost.platform_limits (workspace_id, platform, rate_group) where breaker_opened_at is not null;
create index submissions_pending on autopost.submissions (workspace_id) where status = 'pending';
create index credential_health_failing on autopost.credential_health (workspace_id, auth_ref) where failures > 0 and lost_at is null;
create index credential_health_expiring on autopost.credential_health (workspace_id, valid_until) where next_refresh_at is null and lost_at is null and valid_until is not null;
create index pull_cursors_failing on autopost.pull_cursors (workspace_id, source_id) where failures > 0;
create index pull_sources_stopped on autopost.pull_sources (workspace_id, source_id) where stopped is not null;
