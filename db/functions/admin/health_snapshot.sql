create or replace function autopost.health_snapshot(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns the exact state of a workspace.
-- Returns: {"at", "queue": {status: deliveries}, "oldest_due_at", "paused_channels", "failed_24h",
--          "top_errors": [{"code", "count"}] of the newest 1,000 failures, "credentials": refused
--          or expiring, "sources": failing or stopped, "alerts": {severity: open}, "last_posts":
--          the newest five}.
-- Reads:   as health_of.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.health_of(p_workspace_id);
end
$$;
