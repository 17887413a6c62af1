create or replace function autopost.list_event_types(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the own event types of a workspace, by name.
-- Returns: [{"event", "template_id", "enabled", "moderated", "media_path", "tags", "updated_at"}].
-- Reads:   event_types.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return (select coalesce(jsonb_agg(to_jsonb(t) - 'workspace_id' order by t.event), '[]')
		from autopost.event_types t where t.workspace_id = p_workspace_id);
end
$$;
