-- Messages with the start of their text.
create or replace view autopost.list_messages_rows as
select m.workspace_id, m.message_id, left(m.payload ->> 'text', 200) as excerpt,
	coalesce(jsonb_array_length(m.payload -> 'media'), 0) as media, m.tags,
	m.source_ref, m.content_hash, m.seen_count, m.first_ingest_run_id as run_id, m.created_at, m.last_seen_at
from autopost.messages m;

create or replace view autopost.list_messages with (security_barrier = true) as
select v.workspace_id, v.message_id, v.excerpt, v.media, v.tags, v.source_ref, v.content_hash, v.seen_count, v.run_id,
	v.created_at, v.last_seen_at
from autopost.list_messages_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
