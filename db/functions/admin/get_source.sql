create or replace function autopost.get_source(p_workspace_id text, p_source_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a source without masking, with its cursor. Only the engine may call it.
-- Returns: a row of list_sources with cursor_json; null if the source does not exist.
-- Reads:   list_sources (view), pull_cursors.
declare
	v_row jsonb;
	v_cursor jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('source_id', p_source_id <> '');
	select to_jsonb(v) into v_row from autopost.list_sources_rows v
	where v.workspace_id = p_workspace_id and v.source_id = p_source_id;
	-- A separate statement: an outer join to the view ends a node of a cluster.
	select c.cursor_json into v_cursor from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	return v_row || jsonb_build_object('cursor_json', coalesce(v_cursor, '{}'));
end
$$;
