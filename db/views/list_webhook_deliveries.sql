-- Requests to result webhooks.
create or replace view autopost.list_webhook_deliveries_rows as
select s.workspace_id, s.webhook_id, s.event_id as id, s.event_at as ts, s.event_type as type, s.status, s.attempt,
	case when s.status = 'pending' then s.due_at end as due_at, s.http_status, s.error, s.created_at, s.attempted_at,
		s.finished_at, s.body::jsonb as body
from autopost.webhook_sends s;

create or replace view autopost.list_webhook_deliveries with (security_barrier = true) as
select v.workspace_id, v.webhook_id, v.id, v.ts, v.type, v.status, v.attempt, v.due_at, v.http_status, v.error,
	v.created_at, v.attempted_at, v.finished_at, v.body
from autopost.list_webhook_deliveries_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
