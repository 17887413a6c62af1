create or replace function autopost.ready_act_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp set enable_bitmapscan = off set enable_sort = off
as $$
-- Workspaces in which something is to be done now to a post that was sent. Looks across workspaces: one probe of post_acts_open for each lane
-- of those that have anything to do at all.
-- Reads: post_acts, workspaces.
declare
	v_now timestamptz := autopost.now_ts();
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	with recursive w as (
		(select a.workspace_id from autopost.post_acts a
		where a.status in ('queued', 'sending', 'retry')
		order by a.workspace_id limit 1)
		union all
		select n.workspace_id
		from w, lateral (
			select a.workspace_id from autopost.post_acts a
			where a.status in ('queued', 'sending', 'retry') and a.workspace_id > w.workspace_id
			order by a.workspace_id limit 1) n
	)
	select w.workspace_id from w
	where autopost.may_speak_for(w.workspace_id)
	and exists (select 1 from autopost.act_lanes(w.workspace_id) l where l.next_at <= v_now)
	and exists (select 1 from autopost.workspaces s where s.workspace_id = w.workspace_id and s.status = 'active')
	limit p_limit;
end
$$;
