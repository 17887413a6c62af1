create or replace function autopost.list_events(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_events
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists events, newest first. All keys of p_filter are optional: delivery_id, message_id,
--          channel_id, action, result (ok or error), since (inclusive) and until (exclusive; instants with offset),
--          before_ts with before_id (older than this event: the next page). The plan is made per
--          call, so that a missing key does not disable an index.
-- Raises:  AP001 for an unknown key, a malformed id or instant, or a limit outside 1 to 10000.
-- Reads:   list_events (view).
declare
	v_since timestamptz := autopost.instant_in(p_filter, 'since');
	v_until timestamptz := autopost.instant_in(p_filter, 'until');
	v_before_ts timestamptz := autopost.instant_in(p_filter, 'before_ts');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_delivery_id uuid := autopost.uuid_in(p_filter, 'delivery_id');
	v_message_id uuid := autopost.uuid_in(p_filter, 'message_id');
	v_deliveries uuid[]; -- deliveries of the message; they find its events
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{delivery_id,message_id,channel_id,action,result,since,until,before_ts,before_id}',
		p_limit);
	if v_delivery_id is not null or v_message_id is not null then
		-- two indexes find the events of a message
		perform autopost.read_in_order(false), set_config('enable_bitmapscan', 'on', true);
	end if;
	perform autopost.check_result(p_filter);
	v_deliveries := array(select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = v_message_id);
	return query
	select v.* from autopost.list_events_rows v
	where v.workspace_id = p_workspace_id
	and (v_delivery_id is null or v.delivery_id = v_delivery_id)
	and (v_message_id is null or v.delivery_id = any (v_deliveries)
		or (v.message_id = v_message_id and v.delivery_id is null))
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (not p_filter ? 'action' or v.action = p_filter ->> 'action')
	and (not p_filter ? 'result' or v.result = p_filter ->> 'result')
	and (v_since is null or v.ts >= v_since)
	and (v_until is null or v.ts < v_until)
	and (v_before_ts is null or v.ts <= v_before_ts)
	and (v_before_id is null or (v.ts, v.id) < (v_before_ts, v_before_id))
	order by v.ts desc, v.id desc
	limit p_limit;
end
$$;
