-- Deliveries with platform and target, without payloads.
create or replace view autopost.list_deliveries_rows as
select d.workspace_id, d.delivery_id, d.message_id, d.channel_id, c.platform, c.target_id, d.status, d.attempt,
	d.due_at, d.scheduled_for,
	d.next_retry_at, d.provider_message_id, d.sent_at, d.last_error, d.rendered_text, d.render_meta, d.unknown_outcomes,
		d.trace_id,
	d.ingest_run_id, d.created_at, d.updated_at, d.finished_at, d.phase
from autopost.deliveries d
join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id;

create or replace view autopost.list_deliveries with (security_barrier = true) as
select v.workspace_id, v.delivery_id, v.message_id, v.channel_id, v.platform, v.target_id, v.status, v.attempt,
	v.due_at, v.scheduled_for, v.next_retry_at, v.provider_message_id, v.sent_at, v.last_error, v.rendered_text,
	v.render_meta, v.unknown_outcomes, v.trace_id, v.ingest_run_id, v.created_at, v.updated_at, v.finished_at
from autopost.list_deliveries_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
