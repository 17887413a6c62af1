-- +goose Up
-- What is done to a post after it was sent: edited, deleted, pinned, unpinned. The delivery stays sent; each act is a row of its own.

alter table autopost.platforms
	add column acts text[] not null default '{}' check (acts <@ '{edit,delete,pin,unpin}'); -- what may be done to a post that was sent
update autopost.platforms p
set acts = a.acts::text[]
from (values ('telegram', '{edit,delete,pin,unpin}'), ('max', '{edit,delete,pin,unpin}'), ('x', '{delete}'), ('youtube', '{edit,delete}')) a (platform, acts)
where p.platform = a.platform;

create table autopost.post_acts (
	workspace_id  text not null,
	act_id        uuid not null,
	delivery_id   uuid not null,
	message_id    uuid not null,
	channel_id    text not null,
	lane          text not null, -- the rate group when it was asked for, "platform/group": those of one lane do not hold up the others
	kind          text not null check (kind in ('edit', 'delete', 'pin', 'unpin')),
	due_at        timestamptz not null, -- when it was asked for; acts of a delivery go in this order
	rendered_text text,  -- of an edit: what the post is to say
	render_meta   jsonb,
	status        text not null default 'queued' check (status in ('queued', 'sending', 'retry', 'done', 'failed', 'void')),
	next_at       timestamptz not null, -- when it is worth a look: due, after a wait, at the end of a lease
	attempt       int not null default 0 check (attempt >= 0),
	claim_token   text,
	claimed_by    text, -- the run that has it
	send_at       timestamptz, -- its reserved rate slot
	started_at    timestamptz, -- when its last call began
	last_error    jsonb,
	settled       jsonb, -- the last commit: its token and its answer
	operator      text not null,
	reason        text not null,
	created_at    timestamptz not null,
	updated_at    timestamptz not null,
	finished_at   timestamptz,
	primary key (workspace_id, act_id),
	foreign key (workspace_id, delivery_id) references autopost.deliveries (workspace_id, delivery_id) on delete cascade,
	check ((status = 'sending') = (claim_token is not null)),
	check ((status in ('done', 'failed', 'void')) = (finished_at is not null)),
	check ((kind = 'edit') = (rendered_text is not null) and (kind = 'edit') = (render_meta is not null))
);
-- What is to be done next: claim, and whether there is anything.
create index post_acts_open on autopost.post_acts (workspace_id, lane, next_at, act_id) where status in ('queued', 'sending', 'retry');
-- What was and is to be done to a delivery: order, lists, why.
create index post_acts_delivery on autopost.post_acts (workspace_id, delivery_id, act_id);
create index post_acts_message on autopost.post_acts (workspace_id, message_id, act_id);

-- +goose StatementBegin
do $$
begin
	alter table autopost.post_acts enable row level security, force row level security;
	create policy workspace on autopost.post_acts using (workspace_id = current_setting('autopost.workspace_id', true));
	create policy owner_session on autopost.post_acts to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');
end
$$;
-- +goose StatementEnd

-- What claim_acts answers. Attributes may be appended, never changed. render_meta has the plan of an edit, and always the ids of what was sent.
create type autopost.claimed_act as (
	workspace_id  text,
	act_id        uuid,
	kind          text,
	attempt       int,
	claim_token   text,
	lease_until   timestamptz,
	delivery_id   uuid,
	message_id    uuid,
	channel_id    text,
	platform      text,
	target_id     text,
	auth_ref      text,
	rate_group    text,
	rendered_text text,
	render_meta   jsonb,
	payload       jsonb,
	settings      jsonb,
	trace_id      uuid,
	provider_message_id text
);

create view autopost.list_acts with (security_invoker = true) as
select a.workspace_id, a.act_id, a.delivery_id, a.message_id, a.channel_id, a.kind, a.status, a.due_at, a.next_at, a.attempt, a.rendered_text, a.started_at,
	a.last_error, a.operator, a.reason, a.created_at, a.updated_at, a.finished_at
from autopost.post_acts a;

alter table autopost.events drop constraint events_action_check;
alter table autopost.events add constraint events_action_check check (action in (
	'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed', 'failed_permanent',
	'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled', 'message_tag_mismatch',
	'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated', 'ingress_rate_limited',
	'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error', 'unknown_outcome', 'unknown_resolved',
	'released', 'cooldown', 'breaker', 'submission_failed', 'stale_commit', 'manual_skip',
	'auth_lost', 'auth_refreshed', 'auth_expiring',
	'act_requested', 'act_done', 'act_retry_scheduled', 'act_failed', 'act_void')) not valid;
