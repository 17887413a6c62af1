create or replace function autopost.list_x_posts(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.x_post_events
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
		set enable_mergejoin = off
as $$
-- Purpose: lists domain events as posts of Global X, newest first. All keys of p_filter are optional:
--          id, status (pending, approved, posted, failed, skipped, rejected, expired), type (eventType),
--          before_id (older than this id: the next page). The plan is made per call, so that a
--          missing key does not disable an index.
-- Raises:  AP001 for an unknown key or status, a malformed id, or a limit outside 1 to 10000.
-- Reads:   x_post_events (view).
declare
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_id uuid := autopost.uuid_in(p_filter, 'id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{id,status,type,before_id}', p_limit);
	perform autopost.check_status(p_filter, '{pending,approved,posted,failed,skipped,rejected,expired}');
	return query
	select v.* from autopost.x_post_events_rows v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'status' or v.status = p_filter ->> 'status')
	and (not p_filter ? 'type' or v."eventType" = p_filter ->> 'type')
	and (v_id is null or v."_id" = v_id)
	and (v_before_id is null or v."_id" < v_before_id)
	order by v."_id" desc
	limit p_limit;
end
$$;
