create or replace function autopost.get_source(p_workspace_id text, p_source_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a source without masking, with its cursor. Only the engine may call it.
-- Returns: a row of list_sources with cursor_json; null if the source does not exist.
-- Reads:   list_sources (view), pull_cursors.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('source_id', p_source_id <> '');
	return (
		select to_jsonb(v) || jsonb_build_object('cursor_json', coalesce(c.cursor_json, '{}'))
		from autopost.list_sources_rows v
		left join autopost.pull_cursors c on c.workspace_id = p_workspace_id and c.source_id = v.source_id
		where v.workspace_id = p_workspace_id and v.source_id = p_source_id);
end
$$;
