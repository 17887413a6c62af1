-- +goose Up
-- The queue: deliveries, post changes, and the runs of dispatchers.

-- One message for one channel. Columns that never change come first and those of each claim and commit last: the log of
-- an update holds the bytes from the first change to the last. Columns of a fixed size come before texts, because an
-- update compares the columns of all indexes, and those have a known place in the row.
create table autopost.deliveries (
	delivery_id         uuid not null,
	message_id          uuid not null,
	created_at          timestamptz not null default now(),
	not_before          timestamptz not null default now(),
	due_at              timestamptz not null generated always as (
		case when status = 'retry' then greatest(not_before, scheduled_for, next_retry_at)
		     else greatest(not_before, scheduled_for) end) stored,
	hash_version        int not null,
	unknown_outcomes    int not null default 0 check (unknown_outcomes >= 0),
	unknown_allowance   int not null default 1, -- after this many unknown outcomes it may still be sent again
	granted_attempts    int not null default 0 check (granted_attempts >= 0),
	workspace_id        text not null,
	channel_id          text not null,
	content_hash        text not null,
	enqueue_batch_id    uuid,
	scheduled_for       timestamptz,
	outcome_unknown_at  timestamptz,
	trace_id            uuid,
	ingest_run_id       uuid,
	template_version    text,
	rendered_text       text not null default '',
	render_meta         jsonb not null default '{}',
	last_error          jsonb,
	next_retry_at       timestamptz,
	status              text not null default 'queued' check (status in
		('queued', 'claimed', 'sending', 'sent', 'retry', 'deduped', 'failed_permanent', 'dead')),
	-- The status for indexes: queued and sending do not differ, so a claim changes no index.
	phase               text not null generated always as (
		case when status in ('queued', 'sending') then 'active' else status end) stored,
	attempt             int not null default 0 check (attempt >= 0),
	quota_held          boolean not null default false, -- the current claim uses a quota
	claimed_at          timestamptz,
	sending_started_at  timestamptz,
	sending_lease_until timestamptz,
	send_at             timestamptz, -- its reserved slot
	call_begun_at       timestamptz, -- start of the call of the last claim; null before it
	claimed_by          text, -- the dispatch run of the claim
	claim_token         text,
	last_call_at        timestamptz, -- start of the last call
	sent_at             timestamptz,
	finished_at         timestamptz, -- when it became sent, deduped, failed_permanent or dead
	updated_at          timestamptz not null default now(),
	provider_message_id text,
	settled             jsonb, -- token and answer of the last commit, for a repeated commit
	primary key (workspace_id, delivery_id) with (fillfactor = 50), -- a delivery has a second entry once it is committed
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id),
	check ((status = 'sent') = (sent_at is not null)),
	check (status <> 'sent' or provider_message_id is not null),
	check ((status in ('claimed', 'sending')) = (claim_token is not null)),
	check ((status = 'sending') = (sending_lease_until is not null)),
	check (status <> 'retry' or next_retry_at is not null)
) with (fillfactor = 55);
alter table autopost.deliveries alter column workspace_id set statistics 0; -- as channels

-- A claim of a queued delivery, its start and its lease are updates in place (HOT). So no index mentions status,
-- attempt, updated_at, claimed_at or another column that they change, also not in a condition: see phase. Deliveries in
-- flight are found by channel_gates.inflight (in_flight).

-- A commit adds entries to three indexes. Free space in those whose key it does not change, and no search for equal entries
-- where there are none, keep PostgreSQL from clearing full pages: that took a fifth of a delivery.

-- Claim and gates: the next due delivery of a channel. Those in flight stay in it until they end.
create index deliveries_due on autopost.deliveries (workspace_id, channel_id, due_at, delivery_id)
	where phase in ('active', 'retry');
-- Claim: whether a channel has a due retry, and which goes first. Retries that wait are passed in the index.
-- Alerts: retries that wait for a person (infinity).
create index deliveries_again on autopost.deliveries (workspace_id, channel_id, next_retry_at) where phase = 'retry';
create index deliveries_retry on autopost.deliveries
	(workspace_id, channel_id, (greatest(not_before, scheduled_for)), delivery_id, due_at) where phase = 'retry';
-- Claims of two-phase callers.
create index deliveries_claimed on autopost.deliveries (workspace_id, delivery_id) where phase = 'claimed';
-- Enqueue: at most one open delivery per content and channel.
create unique index deliveries_inflight on autopost.deliveries (workspace_id, content_hash, channel_id, hash_version)
	where phase in ('active', 'claimed', 'retry');
-- Alerts and lists: failures, unknown outcomes, deliveries that wait for a person.
create index deliveries_troubled on autopost.deliveries (workspace_id, phase, finished_at)
	where phase in ('dead', 'failed_permanent');
create index deliveries_doubted on autopost.deliveries (workspace_id, channel_id, outcome_unknown_at)
	where unknown_outcomes > 0;
create index deliveries_unknown on autopost.deliveries (workspace_id, finished_at)
	where phase = 'failed_permanent' and outcome_unknown_at is not null;
-- Lists of finished deliveries, newest first.
create index deliveries_ended on autopost.deliveries (channel_id, workspace_id, delivery_id)
	with (deduplicate_items = off) where phase in ('sent', 'deduped', 'failed_permanent', 'dead');
create index deliveries_unsent on autopost.deliveries (workspace_id, phase, delivery_id)
	where phase in ('deduped', 'failed_permanent', 'dead');
-- Calendar and free slots: the posts that a channel got an hour or more after their id was made (sent_late). The others,
-- which are most, are found by their id, so that their commit adds no entry here.
create index deliveries_sent_late on autopost.deliveries (channel_id, workspace_id, sent_at)
	where phase = 'sent' and abs(date_part('epoch', sent_at - to_timestamp(
		('x' || left(replace(delivery_id::text, '-', ''), 12))::bit(48)::bigint / 1000::double precision))) >= 3600;
-- All deliveries of a message. Led by the id, as events_delivery. Dedup window: when the channel last got the message,
-- which stands for its hash. Suppressed repeats are apart, because a content may have very many: a query that does not
-- want them says "(phase = 'deduped') is false". Fan-out: a range that is repeated after a crash enqueues nothing twice.
create unique index deliveries_message on autopost.deliveries (message_id, channel_id, (phase = 'deduped'),
	enqueue_batch_id, workspace_id) with (fillfactor = 50, deduplicate_items = off);

-- Row of claim_deliveries. Attributes may be appended, never changed.
create type autopost.claimed_delivery as (
	workspace_id             text, -- the tenant
	delivery_id              uuid,
	message_id               uuid, -- the content, the same for all channels of a post
	channel_id               text,
	platform                 text,
	target_id                text, -- the platform's chat or account, or "chat:thread"
	auth_ref                 text, -- name of the credential
	rate_group               text, -- channels of a platform with the same group share a rate limit
	attempt                  int, -- number of this attempt, from 1
	claim_token              text, -- proves the claim; start_call and commit_outcome need it
	sending_lease_until      timestamptz, -- end of the claim
	send_at                  timestamptz, -- reserved slot; null without a rate limit
	rendered_text            text, -- text in the platform's dialect; send it verbatim
	render_meta              jsonb, -- steps of the call, their progress, parse mode, buttons
	payload                  jsonb, -- the normalized post with its media
	settings                 jsonb, -- settings of the channel
	trace_id                 uuid, -- the same for all rows and logs of a post
	on_unknown               text, -- reconcile, hold or resend
	unknown_outcomes         int, -- unknown outcomes of earlier attempts
	last_call_at             timestamptz, -- start of the last call; null before the first
	last_provider_message_id text, -- the platform's id of the channel's newest post
	known_posts              jsonb, -- other posts of the channel, for reconciling; null without an unknown outcome
	due_at                   timestamptz, -- earliest start by schedule and retry
	scheduled_for            timestamptz, -- time the sender asked for; null for at once
	call_begun_at            timestamptz, -- start of the call if claim_and_start recorded it, else null
	deadline                 timestamptz -- end of that call, else null
);

-- Changes of sent posts. The delivery stays sent.
create table autopost.post_acts (
	workspace_id  text not null,
	act_id        uuid not null,
	delivery_id   uuid not null,
	message_id    uuid not null,
	channel_id    text not null,
	lane          text not null, -- "platform/group" at the request; lanes do not wait for each other
	kind          text not null check (kind in ('edit', 'delete', 'pin', 'unpin')),
	due_at        timestamptz not null, -- changes of a delivery run in this order
	rendered_text text, -- of an edit: the new text
	render_meta   jsonb,
	status        text not null default 'queued' check (
		status in ('queued', 'sending', 'retry', 'done', 'failed', 'void')),
	next_at       timestamptz not null, -- next claim: when due, after a wait, or at the end of the lease
	attempt       int not null default 0 check (attempt >= 0),
	claim_token   text,
	claimed_by    text, -- the dispatch run of the claim
	send_at       timestamptz, -- its reserved slot
	started_at    timestamptz, -- start of the last call
	last_error    jsonb,
	settled       jsonb, -- token and answer of the last commit
	operator      text not null,
	reason        text not null,
	created_at    timestamptz not null,
	updated_at    timestamptz not null,
	finished_at   timestamptz,
	primary key (workspace_id, act_id),
	foreign key (workspace_id, delivery_id) references autopost.deliveries (workspace_id, delivery_id)
		on delete cascade,
	check ((status = 'sending') = (claim_token is not null)),
	check ((status in ('done', 'failed', 'void')) = (finished_at is not null)),
	check ((kind = 'edit') = (rendered_text is not null) and (kind = 'edit') = (render_meta is not null))
);
create index post_acts_open on autopost.post_acts (workspace_id, lane, next_at, act_id)
	where status in ('queued', 'sending', 'retry');
create index post_acts_delivery on autopost.post_acts (workspace_id, delivery_id, act_id);
create index post_acts_message on autopost.post_acts (workspace_id, message_id, act_id);

-- Row of claim_acts. Attributes may be appended, never changed. render_meta has the plan of an edit and
-- the ids of the sent posts.
create type autopost.claimed_act as (
	workspace_id        text,
	act_id              uuid,
	kind                text,
	attempt             int,
	claim_token         text,
	lease_until         timestamptz,
	delivery_id         uuid,
	message_id          uuid,
	channel_id          text,
	platform            text,
	target_id           text,
	auth_ref            text,
	rate_group          text,
	rendered_text       text,
	render_meta         jsonb,
	payload             jsonb,
	settings            jsonb,
	trace_id            uuid,
	provider_message_id text
);

-- Heartbeats of daemons; the leases of a silent run end. No workspace_id: only touch_run writes it.
create table autopost.dispatch_runs (
	run_id     text not null primary key,
	started_at timestamptz not null default now(),
	seen_at    timestamptz not null default now(),
	host       text, -- machine of the daemon
	ended_at   timestamptz -- the daemon stopped in order
);

-- begin_dispatch and end_dispatch: the lease and the last window of workspaces. No workspace_id: one row
-- for roles with all workspaces ('*'), one for each other role.
create table autopost.dispatch_cursor (
	scope       text not null primary key,
	served      text not null default '', -- the last workspace of the last finished window
	run_id      text, -- holder of the lease
	lease_until timestamptz,
	handed_out  text[] not null default '{}', -- the window of workspaces, in order
	check ((run_id is null) = (lease_until is null))
);
