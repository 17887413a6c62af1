create or replace function autopost.list_sources(p_workspace_id text, p_limit int) returns setof autopost.list_sources
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the sources of a workspace by id: last and next poll, last error, number of
--          remembered items. Keys and passwords in config_json are masked.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   list_sources (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select v.workspace_id, v.source_id, v.kind, v.enabled, v.stopped, autopost.masked_config(v.config_json),
		v.endpoint_id, v.endpoint_enabled, v.last_poll_at, v.next_poll_at,
		v.failures, v.last_error, regexp_replace(v.moved_to, '[?#].*$', ''), v.items_seen, v.created_at, v.updated_at
	from autopost.list_sources_rows v
	where v.workspace_id = p_workspace_id
	order by v.source_id
	limit p_limit;
end
$$;
