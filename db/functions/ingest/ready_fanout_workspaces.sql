create or replace function autopost.ready_fanout_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Workspaces with a fan-out job that could be worked on now. Looks across workspaces.
-- Reads: workspaces, fanout_jobs.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status <> 'disabled' and autopost.may_speak_for(w.workspace_id)
	and exists (select 1 from autopost.fanout_jobs j
		where j.workspace_id = w.workspace_id and j.status = 'running' and j.next_attempt_at <= v_now)
	order by w.workspace_id
	limit p_limit;
end
$$;
