create or replace function autopost.list_deliveries(p_workspace_id text, p_filter jsonb, p_limit int) returns setof autopost.list_deliveries
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
as $$
-- The newest deliveries that fit. p_filter keys, all optional: delivery_id, message_id, channel_id, status. Planned anew each time, so
-- that a key that is not given costs no index.
-- Raises AP001 for an unknown key or a limit out of 1 to 10000. Reads: list_deliveries (view).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, array['delivery_id', 'message_id', 'channel_id', 'status'], p_limit);
	return query
	select v.* from autopost.list_deliveries v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'delivery_id' or v.delivery_id = (p_filter ->> 'delivery_id')::uuid)
	and (not p_filter ? 'message_id' or v.message_id = (p_filter ->> 'message_id')::uuid)
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (not p_filter ? 'status' or v.status = p_filter ->> 'status')
	order by v.delivery_id desc
	limit p_limit;
end
$$;
