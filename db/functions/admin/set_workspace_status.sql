create or replace function autopost.set_workspace_status(p_workspace_id text, p_status text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sets the status of a workspace: active, paused (accepts posts, starts no calls) or
--          disabled (refuses posts). Calls in flight finish.
-- Returns: as put_workspace.
-- Raises:  as put_workspace; AP003 if the workspace does not exist.
-- Locks:   workspaces.
-- Writes:  workspaces, admin_audit_log.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('status', p_status is not null);
	return autopost.put_workspace(p_workspace_id, jsonb_build_object('status', p_status), p_operator, p_reason,
		p_dry_run);
end
$$;
