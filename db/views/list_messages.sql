-- Messages with the start of their text, and their first 1,000 deliveries counted by status.
create or replace view autopost.list_messages_rows as
select m.workspace_id, m.message_id, left(m.payload ->> 'text', 200) as excerpt,
	coalesce(jsonb_array_length(m.payload -> 'media'), 0) as media, m.tags,
	m.source_ref, m.content_hash, m.seen_count, m.first_ingest_run_id as run_id, m.created_at, m.last_seen_at,
	(select coalesce(jsonb_object_agg(s.status, s.n), '{}') from (
		select x.status, count(*) as n from (
			select d.status from autopost.deliveries d
			where d.workspace_id = m.workspace_id and d.message_id = m.message_id limit 1000) x
		group by x.status) s) as counts,
	m.source - 'fields' as source
from autopost.messages m;

create or replace view autopost.list_messages with (security_barrier = true) as
select v.workspace_id, v.message_id, v.excerpt, v.media, v.tags, v.source_ref, v.content_hash, v.seen_count, v.run_id,
	v.created_at, v.last_seen_at, v.counts, v.source
from autopost.list_messages_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
