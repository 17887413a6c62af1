-- +goose Up
-- What people and programs read: one view a read model, and a function of the same name for callers. security_invoker keeps row-level
-- security in force for whoever selects.

-- Deliveries with what is held about them now, without payloads.
create view autopost.list_deliveries with (security_invoker = true) as
select d.workspace_id, d.delivery_id, d.message_id, d.channel_id, c.platform, c.target_id, d.status, d.attempt, d.due_at, d.scheduled_for,
	d.next_retry_at, d.provider_message_id, d.sent_at, d.last_error, d.rendered_text, d.render_meta, d.unknown_outcomes, d.trace_id,
	d.ingest_run_id, d.created_at, d.updated_at, d.finished_at
from autopost.deliveries d
join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id;

-- The audit trail.
create view autopost.list_events with (security_invoker = true) as
select e.workspace_id, e.id, e.ts, e.action, e.result, e.attempt, e.delivery_id, e.message_id, e.channel_id, e.error, e.meta
from autopost.events e;

-- Channels with their gate and their group's limit.
create view autopost.list_channels with (security_invoker = true) as
select c.workspace_id, c.channel_id, c.platform, c.target_id, c.title, c.enabled, c.paused_until, c.cooldown_until, c.error_streak,
	coalesce(a.auth_ref, c.auth_ref) as auth_ref, c.rate_group, c.rate_rps, l.rate_rps as group_rate_rps, l.cooldown_until as group_cooldown_until,
	c.max_parallel, g.inflight, c.send_mode, c.tags, c.route_filter, c.settings, c.created_at, c.updated_at
from autopost.channels c
join autopost.channel_gates g on g.workspace_id = c.workspace_id and g.channel_id = c.channel_id
left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
left join autopost.platform_limits l on l.workspace_id = c.workspace_id and l.platform = c.platform and l.rate_group = c.rate_group;

-- What waits, is in flight, or needs a person, by status. What is done is not counted: its rows have no index and only grow.
create view autopost.queue_snapshot with (security_invoker = true) as
select d.workspace_id, d.status, count(*) as deliveries, min(d.due_at) as oldest_due_at
from autopost.deliveries d
where d.status in ('queued', 'retry')
group by d.workspace_id, d.status
union all
select d.workspace_id, d.status, count(*), min(d.due_at)
from autopost.deliveries d
where d.status in ('claimed', 'sending')
group by d.workspace_id, d.status
union all
select d.workspace_id, d.status, count(*), min(d.due_at)
from autopost.deliveries d
where d.status in ('dead', 'failed_permanent')
group by d.workspace_id, d.status;
