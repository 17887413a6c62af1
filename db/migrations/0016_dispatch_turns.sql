-- +goose Up
-- Whose turn it is: the gates that are armed, across workspaces, and the turn and lease of orchestrators that want one run at a time.

-- A gate that is shut leaves the index and costs nothing: neither the claim nor the look across workspaces passes it. Whoever asks
-- by ready_at says "ready_at < 'infinity'" too, or this index cannot serve.
create index channel_gates_armed on autopost.channel_gates (workspace_id, platform, rate_group, ready_at) where ready_at < 'infinity';
drop index autopost.channel_gates_ready;

-- No workspace: one row for those who speak for all workspaces ('*'), one for each role that speaks for some. Written by
-- begin_dispatch and end_dispatch alone.
create table autopost.dispatch_cursor (
	scope       text not null primary key,
	served      text not null default '',   -- the last workspace of the last window that was processed
	run_id      text,                       -- who holds the lease
	lease_until timestamptz,
	handed_out  text[] not null default '{}', -- its window of workspaces, in their order
	check ((run_id is null) = (lease_until is null))
);

insert into autopost.settings (key, value, meaning) values
	('dispatch_window_workspaces', '100', 'workspaces that begin_dispatch hands out to one run');
