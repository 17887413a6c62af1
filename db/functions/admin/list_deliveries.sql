create or replace function autopost.list_deliveries(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_deliveries
language plpgsql security definer set search_path = autopost, pg_temp set enable_sort = off set enable_seqscan = off
	set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off
as $$
-- Purpose: lists the newest deliveries. All keys of p_filter are optional: delivery_id, message_id,
--          channel_id, status, error_code (of failed or retrying deliveries), since (inclusive) and
--          until (exclusive) of the creation, before_id (older than this id: the next page).
-- Raises:  AP001 for an unknown key or status, a malformed id or instant, or a limit outside 1 to
--          10000.
-- Reads:   list_deliveries (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{delivery_id,message_id,channel_id,status,error_code,since,until,before_id}',
		p_limit);
	perform autopost.check_status(p_filter, autopost.delivery_statuses());
	if p_filter ?| '{delivery_id,message_id}' then
		perform autopost.read_in_order(false);
		return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, case
			when p_filter ? 'status' then array[p_filter ->> 'status'] end, p_limit) d;
	elsif p_filter ? 'status' then
		perform autopost.read_in_order(p_filter ->> 'status' in ('sent', 'deduped', 'failed_permanent', 'dead'));
		return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, array[p_filter ->> 'status'],
			p_limit) d;
	elsif p_filter ? 'error_code' then
		return query
		select u.* from autopost.failed_deliveries(p_workspace_id, p_filter, p_limit) u
		order by u.delivery_id desc
		limit p_limit;
	elsif p_filter ? 'channel_id' then
		-- Finished, waiting and in-flight rows of a channel have one index each.
		return query
		select u.* from autopost.channel_deliveries(p_workspace_id, p_filter, p_limit) u
		order by u.delivery_id desc
		limit p_limit;
	else
		return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, null, p_limit) d;
	end if;
end
$$;
