create or replace function autopost.list_webhook_deliveries(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_webhook_deliveries
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
as $$
-- Purpose: lists the requests of a result webhook, sent and waiting, newest event first. Keys of
--          p_filter: webhook_id (required), status, id (of the event), before_ts and before_id (the
--          last row of the previous page).
-- Raises:  AP001 for a malformed filter, or a limit outside 1 to 10000.
-- Reads:   list_webhook_deliveries (view).
declare
	v_id uuid := autopost.uuid_in(p_filter, 'id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_before_ts timestamptz := autopost.instant_in(p_filter, 'before_ts');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{webhook_id,status,id,before_ts,before_id}', p_limit);
	perform autopost.check_status(p_filter, '{pending,sending,delivered,dead}');
	perform autopost.require_argument('filter', p_filter ->> 'webhook_id' <> '');
	return query
	select v.* from autopost.list_webhook_deliveries_rows v
	where v.workspace_id = p_workspace_id and v.webhook_id = p_filter ->> 'webhook_id'
	and (v_id is null or v.id = v_id)
	and (not p_filter ? 'status' or v.status = p_filter ->> 'status')
	and (v_before_ts is null or (v.ts, v.id) < (v_before_ts, v_before_id))
	order by v.ts desc, v.id desc
	limit p_limit;
end
$$;
