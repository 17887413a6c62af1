-- Sources with their cursor. items_seen counts remembered items.
create or replace view autopost.list_sources_rows as
select s.workspace_id, s.source_id, s.kind, s.enabled, s.stopped, s.config_json,
	(select x.endpoint_id from autopost.workspace_endpoints x
	where x.workspace_id = s.workspace_id and x.source_id = s.source_id and x.kind = 'pull_source'
	order by x.enabled desc, x.endpoint_id
	limit 1) as endpoint_id,
	exists (select 1 from autopost.workspace_endpoints x
		where x.workspace_id = s.workspace_id and x.source_id = s.source_id and x.kind = 'pull_source' and x.enabled)
		as endpoint_enabled,
	c.last_poll_at, case when s.enabled then c.next_poll_at end as next_poll_at, coalesce(c.failures, 0) as failures,
		c.last_error,
	c.cursor_json ->> 'moved_to' as moved_to,
	(select count(*) from autopost.pull_receipts r where r.workspace_id = s.workspace_id
		and r.source_id = s.source_id) as items_seen,
	s.created_at, s.updated_at
from autopost.pull_sources s
left join autopost.pull_cursors c on c.workspace_id = s.workspace_id and c.source_id = s.source_id;

-- Readers do not see config_json and the query of moved_to: they may hold keys.
create or replace view autopost.list_sources with (security_barrier = true) as
select v.workspace_id, v.source_id, v.kind, v.enabled, v.stopped, null::jsonb as config_json, v.endpoint_id,
	v.endpoint_enabled, v.last_poll_at, v.next_poll_at, v.failures, v.last_error,
	regexp_replace(v.moved_to, '[?#].*$', '') as moved_to, v.items_seen, v.created_at, v.updated_at
from autopost.list_sources_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
