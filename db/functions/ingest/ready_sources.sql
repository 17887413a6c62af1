create or replace function autopost.ready_sources() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Active workspaces with a source that is due, and how long it is until another one is: what a poller asks before it looks into any of them.
-- Returns {"workspaces": ["…"], "next_poll_ms"}: of those that are not due yet; null = there are none. Looks across workspaces.
-- Reads: workspaces, pull_sources, pull_cursors.
declare
	v_now timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	v_now := autopost.now_ts();
	with source as (
		select s.workspace_id, coalesce(c.next_poll_at, v_now) as due_at -- one without a cursor was never polled
		from autopost.pull_sources s
		join autopost.workspaces w on w.workspace_id = s.workspace_id and w.status = 'active'
		left join autopost.pull_cursors c on c.workspace_id = s.workspace_id and c.source_id = s.source_id
		where s.enabled and autopost.may_speak_for(s.workspace_id))
	select jsonb_build_object(
		'workspaces', array(select distinct s.workspace_id from source s where s.due_at <= v_now order by s.workspace_id),
		'next_poll_ms', (select ceil(extract(epoch from min(s.due_at) - v_now) * 1000)::bigint from source s where s.due_at > v_now and isfinite(s.due_at)))
	into v_answer;
	return v_answer;
end
$$;
