create or replace function autopost.ready_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Active workspaces for which a claim could give something now, the longest waiting first. Looks across workspaces.
-- Reads: workspaces, channel_gates, platform_limits.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	select r.workspace_id
	from (
		select w.workspace_id, autopost.next_ready(w.workspace_id) as ready_at from autopost.workspaces w
		where w.status = 'active' and autopost.may_speak_for(w.workspace_id)
	) r
	where r.ready_at <= v_now
	order by r.ready_at, r.workspace_id
	limit p_limit;
end
$$;
