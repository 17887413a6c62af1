create or replace function autopost.ready_sources() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Active workspaces with a source that is due, and how long it is until another one is: what a poller asks before it looks into any of them.
-- Returns {"workspaces": ["…"], "next_poll_ms"}: of those that are not due yet; null = there are none. Looks across workspaces.
-- Reads: what source_polls reads.
declare
	v_now timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	v_now := autopost.now_ts();
	with poll as materialized (select p.workspace_id, p.due_at from autopost.source_polls() p)
	select jsonb_build_object(
		'workspaces', array(select distinct p.workspace_id from poll p where p.due_at <= v_now order by p.workspace_id),
		'next_poll_ms', (select ceil(extract(epoch from min(p.due_at) - v_now) * 1000)::bigint from poll p where p.due_at > v_now and isfinite(p.due_at)))
	into v_answer;
	return v_answer;
end
$$;
