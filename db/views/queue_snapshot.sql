-- Open and failed deliveries by status. Sent ones are not counted: no index holds them.
create or replace view autopost.queue_snapshot_rows as
select d.workspace_id, d.status, count(*) as deliveries, min(d.due_at) as oldest_due_at
from autopost.deliveries d
where d.phase in ('active', 'retry') and d.status <> 'sending'
group by d.workspace_id, d.status
union all
select g.workspace_id, d.status, count(*), min(d.due_at)
from autopost.channels_in_flight f
join autopost.channel_gates g on g.workspace_id = f.workspace_id and g.channel_id = f.channel_id
cross join lateral (
	select x.status, x.due_at from autopost.deliveries x
	where x.workspace_id = g.workspace_id and x.channel_id = g.channel_id and x.phase in ('active', 'retry')
		and x.status = 'sending'
	order by x.due_at limit g.inflight) d
where g.inflight > 0
group by g.workspace_id, d.status
union all
select d.workspace_id, d.status, count(*), min(d.due_at)
from autopost.deliveries d
where d.phase = 'claimed'
group by d.workspace_id, d.status
union all
select d.workspace_id, d.status, count(*), min(d.due_at)
from autopost.deliveries d
where d.phase in ('dead', 'failed_permanent')
group by d.workspace_id, d.status;

create or replace view autopost.queue_snapshot with (security_barrier = true) as
select v.workspace_id, v.status, v.deliveries, v.oldest_due_at
from autopost.queue_snapshot_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
