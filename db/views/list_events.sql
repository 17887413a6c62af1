-- Events of posts.
create or replace view autopost.list_events_rows as
select e.workspace_id, e.id, e.ts, e.action::text as action, e.result, e.attempt, e.delivery_id, e.message_id, e.channel_id, e.error,
	e.meta, e.payload_ref
from autopost.events e;

create or replace view autopost.list_events with (security_barrier = true) as
select v.workspace_id, v.id, v.ts, v.action, v.result, v.attempt, v.delivery_id, v.message_id, v.channel_id, v.error,
	v.meta, v.payload_ref
from autopost.list_events_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
