-- +goose Up
-- Sources: why one was stopped, when one was last asked, how far its own pace is followed; and what people see of them.

alter table autopost.pull_sources add column stopped jsonb; -- {"code", "message", "at"}: why the engine disabled it; enabling clears it
alter table autopost.pull_cursors add column last_poll_at timestamptz; -- the end of the last poll, however it ended

insert into autopost.settings (key, value, meaning) values
	('pull_hint_max_seconds', '86400', 'how far a source''s own hints (ttl, max-age, Retry-After) may put off its next poll');

-- fail_poll took its place: it also hears how long the source wants to be left alone, and that it is gone.
drop function if exists autopost.record_pull_failure(text, text, text, text);
drop function if exists autopost.poll_interval(text, text); -- it has a third argument now

-- Sources with where they stand. items_seen counts the items that are remembered.
create view autopost.list_sources with (security_invoker = true) as
select s.workspace_id, s.source_id, s.kind, s.enabled, s.stopped, s.config_json, e.endpoint_id, coalesce(e.enabled, false) as endpoint_enabled,
	c.last_poll_at, case when s.enabled then c.next_poll_at end as next_poll_at, coalesce(c.failures, 0) as failures, c.last_error,
	c.cursor_json ->> 'moved_to' as moved_to,
	(select count(*) from autopost.pull_receipts r where r.workspace_id = s.workspace_id and r.source_id = s.source_id) as items_seen,
	s.created_at, s.updated_at
from autopost.pull_sources s
left join lateral (
	select x.endpoint_id, x.enabled from autopost.workspace_endpoints x
	where x.workspace_id = s.workspace_id and x.source_id = s.source_id and x.kind = 'pull_source'
	order by x.enabled desc, x.endpoint_id
	limit 1) e on true
left join autopost.pull_cursors c on c.workspace_id = s.workspace_id and c.source_id = s.source_id;
