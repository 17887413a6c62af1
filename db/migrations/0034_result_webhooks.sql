-- +goose Up
-- Result webhooks: what becomes of posts, told to addresses that tenants name. They are read from the events; nothing is written for them where posts are sent.

create table autopost.result_webhooks (
	workspace_id      text not null references autopost.workspaces (workspace_id),
	webhook_id        text not null check (webhook_id <> ''),
	url               text not null check (url <> ''),
	signing_ref       text not null check (signing_ref <> ''), -- a credential of platform webhook
	old_signing_ref   text, -- signs too, until old_signing_until
	old_signing_until timestamptz,
	event_types       text[] not null default '{*}', -- "delivery.sent", "post.*"
	channel_ids       text[] not null default '{}', -- of what has a channel, only of these; empty: of all
	tags              text[] not null default '{}', -- … only of channels with one of these tags; empty: of all
	enabled           boolean not null default true,
	rps               numeric not null default 20 check (rps > 0),
	max_parallel      int not null default 4 check (max_parallel between 1 and 100),
	timeout_seconds   int not null default 15 check (timeout_seconds between 1 and 60),
	enabled_at        timestamptz not null, -- what happened before is told by a replay alone
	next_send_at      timestamptz not null, -- by rps
	failing_since     timestamptz, -- no call has gone well since then
	disabled_reason   text, -- gone or failing, where the engine disabled it
	created_at        timestamptz not null default now(),
	updated_at        timestamptz not null default now(),
	primary key (workspace_id, webhook_id),
	check ((old_signing_ref is null) = (old_signing_until is null))
);
create index result_webhooks_enabled on autopost.result_webhooks (workspace_id) where enabled;

-- What each of them is to be told, and what became of that.
create table autopost.webhook_sends (
	workspace_id text not null,
	webhook_id   text not null,
	event_id     uuid not null, -- webhook-id: the same in every repetition
	event_type   text not null,
	event_at     timestamptz not null,
	body         text not null, -- the same bytes in every repetition
	status       text not null default 'pending' check (status in ('pending', 'sending', 'delivered', 'dead')),
	attempt      int not null default 0 check (attempt >= 0), -- calls since it was last queued
	due_at       timestamptz not null, -- of one that is sending: when its lease ends
	claim_token  text,
	http_status  int, -- of the last answer
	error        text, -- of the last call, where it did not go well
	created_at   timestamptz not null,
	attempted_at timestamptz,
	finished_at  timestamptz,
	primary key (workspace_id, webhook_id, event_id),
	foreign key (workspace_id, webhook_id) references autopost.result_webhooks (workspace_id, webhook_id) on delete cascade,
	check ((status = 'sending') = (claim_token is not null)),
	check ((status in ('delivered', 'dead')) = (finished_at is not null))
);
create index webhook_sends_due on autopost.webhook_sends (workspace_id, webhook_id, due_at) where status in ('pending', 'sending');
create index webhook_sends_sending on autopost.webhook_sends (workspace_id, webhook_id) where status = 'sending';
create index webhook_sends_told on autopost.webhook_sends (workspace_id, webhook_id, event_at, event_id);
create index webhook_sends_created on autopost.webhook_sends (workspace_id, created_at);

-- How far the events of a workspace were read: docs/decisions/0024-result-webhooks.md.
create table autopost.webhook_cursors (
	workspace_id text not null primary key references autopost.workspaces (workspace_id),
	done_at      timestamptz not null, -- every event of before, whenever it was committed, was read
	mark_xid     xid8 not null, -- who began to write later wrote after mark_at
	mark_at      timestamptz not null,
	read_at      timestamptz not null, -- when the last reading began
	next_done_at timestamptz not null, -- done_at, once the reading under way has come to its end
	position_at  timestamptz, -- the last event of the reading under way; null: none is
	position_id  uuid
);

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.result_webhooks', 'autopost.webhook_sends', 'autopost.webhook_cursors']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

insert into autopost.settings (key, value, default_value, meaning) values
	('webhook_poll_ms', '1000', '1000', 'how often the events of a workspace with result webhooks are read'),
	('webhook_overlap_seconds', '2', '2', 'how far the clocks of servers that follow each other as the primary may differ, and how long an event may take from its time to its first write'),
	('webhook_retention_days', '7', '7', 'how long it is kept what result webhooks were told'),
	('webhook_disable_days', '5', '5', 'for how long all calls of a result webhook must fail until it is disabled');

-- At once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, as Standard Webhooks recommends: a little over three days.
insert into autopost.retry_policies (platform, code, kind, ladder_ms, max_attempts) values
	('result_webhook', '*', 'ladder', '{5000,300000,1800000,7200000,18000000,36000000,50400000,72000000,86400000}', 10);

create view autopost.list_webhook_deliveries with (security_invoker = true) as
select s.workspace_id, s.webhook_id, s.event_id as id, s.event_at as ts, s.event_type as type, s.status, s.attempt,
	case when s.status = 'pending' then s.due_at end as due_at, s.http_status, s.error, s.created_at, s.attempted_at, s.finished_at, s.body::jsonb as body
from autopost.webhook_sends s;
