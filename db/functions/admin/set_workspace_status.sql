create or replace function autopost.set_workspace_status(p_workspace_id text, p_status text, p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- active: served. paused: takes posts in and sends nothing. disabled: refuses posts. Calls that are under way end as they will.
-- Returns and raises as put_workspace, and AP003 where there is no such workspace.
-- Locks: workspaces. Writes: workspaces, admin_audit_log.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('status', p_status is not null);
	return autopost.put_workspace(p_workspace_id, jsonb_build_object('status', p_status), p_operator, p_reason, p_dry_run);
end
$$;
