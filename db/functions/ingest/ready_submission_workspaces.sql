create or replace function autopost.ready_submission_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Workspaces with a submission that a worker could take now. Looks across workspaces.
-- Reads: workspaces, submissions.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status <> 'disabled' and autopost.may_speak_for(w.workspace_id)
	and exists (select 1 from autopost.submissions s
		where s.workspace_id = w.workspace_id and s.status = 'fetching' and s.next_attempt_at <= v_now
		and coalesce(s.lease_until, v_now) <= v_now)
	order by w.workspace_id
	limit p_limit;
end
$$;
