create or replace function autopost.ready_sources() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists active workspaces of the role with a due source, and the time until the next poll.
--          A poller asks this before it reads any workspace.
-- Returns: {"workspaces": ["…"], "next_poll_ms"}: the wait until the first source that is not due
--          yet; null = no such source.
-- Reads:   as source_polls.
declare
	v_now timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	v_now := autopost.now_ts();
	with poll as materialized (select p.workspace_id, p.due_at from autopost.source_polls() p)
	select jsonb_build_object(
		'workspaces', array(select distinct p.workspace_id from poll p where p.due_at <= v_now order by p.workspace_id),
		'next_poll_ms', (select ceil(extract(epoch from min(p.due_at) - v_now) * 1000)::bigint from poll p
			where p.due_at > v_now and isfinite(p.due_at)))
	into v_answer;
	return v_answer;
end
$$;
