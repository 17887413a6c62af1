-- Post changes.
create or replace view autopost.list_acts_rows as
select a.workspace_id, a.act_id, a.delivery_id, a.message_id, a.channel_id, a.kind, a.status, a.due_at, a.next_at,
	a.attempt, a.rendered_text, a.started_at,
	a.last_error, a.operator, a.reason, a.created_at, a.updated_at, a.finished_at
from autopost.post_acts a;

create or replace view autopost.list_acts with (security_barrier = true) as
select v.workspace_id, v.act_id, v.delivery_id, v.message_id, v.channel_id, v.kind, v.status, v.due_at, v.next_at,
	v.attempt, v.rendered_text, v.started_at, v.last_error, v.operator, v.reason, v.created_at, v.updated_at,
	v.finished_at
from autopost.list_acts_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
