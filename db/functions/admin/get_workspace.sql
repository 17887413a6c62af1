create or replace function autopost.get_workspace(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a workspace.
-- Returns: {"workspace_id", "name", "status", "created_at", "updated_at", "channels",
--          "enabled_channels", "queue": {status: deliveries}}; the queue has deliveries that wait,
--          are in flight or need a person.
-- Reads:   workspaces, channels, queue_snapshot (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	return (
		select jsonb_build_object('workspace_id', w.workspace_id, 'name', w.name, 'status', w.status, 'created_at',
			w.created_at, 'updated_at', w.updated_at,
			'channels', (select count(*) from autopost.channels c where c.workspace_id = p_workspace_id),
			'enabled_channels', (select count(*) from autopost.channels c
				where c.workspace_id = p_workspace_id and c.enabled),
			'queue', (select coalesce(jsonb_object_agg(q.status, q.deliveries), '{}')
				from autopost.queue_snapshot_rows q where q.workspace_id = p_workspace_id))
		from autopost.workspaces w
		where w.workspace_id = p_workspace_id);
end
$$;
