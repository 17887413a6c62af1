create or replace function autopost.list_acts(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_acts
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
		set enable_mergejoin = off
as $$
-- Purpose: lists past and future post changes, newest first. All keys of p_filter are optional:
--          act_id, delivery_id, message_id, before_id (older than this id: the next page). The plan
--          is made per call, so that a missing key does not disable an index.
-- Raises:  AP001 for an unknown key, a malformed id, or a limit outside 1 to 10000.
-- Reads:   list_acts (view).
declare
	v_act_id uuid := autopost.uuid_in(p_filter, 'act_id');
	v_delivery_id uuid := autopost.uuid_in(p_filter, 'delivery_id');
	v_message_id uuid := autopost.uuid_in(p_filter, 'message_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{act_id,delivery_id,message_id,before_id}', p_limit);
	return query
	select v.* from autopost.list_acts_rows v
	where v.workspace_id = p_workspace_id
	and (v_act_id is null or v.act_id = v_act_id)
	and (v_delivery_id is null or v.delivery_id = v_delivery_id)
	and (v_message_id is null or v.message_id = v_message_id)
	and (v_before_id is null or v.act_id < v_before_id)
	order by v.act_id desc
	limit p_limit;
end
$$;
