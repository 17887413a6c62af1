create or replace function autopost.deliveries_page(p_workspace_id text, p_filter jsonb, p_statuses text[], p_limit int) returns setof autopost.list_deliveries
language plpgsql stable set plan_cache_mode = force_custom_plan
as $$
-- The newest deliveries in these statuses (null: in any) that fit a filter of list_deliveries. Planned anew each time, so that a key that
-- is not given costs no index, and that the statuses choose the index made for them.
-- Reads: list_deliveries (view).
declare
	v_delivery_id uuid := autopost.uuid_in(p_filter, 'delivery_id');
	v_message_id uuid := autopost.uuid_in(p_filter, 'message_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	return query
	select v.* from autopost.list_deliveries v
	where v.workspace_id = p_workspace_id
	and (v_delivery_id is null or v.delivery_id = v_delivery_id)
	and (v_message_id is null or v.message_id = v_message_id)
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (p_statuses is null or v.status = any (p_statuses))
	and (not p_filter ? 'error_code' or v.last_error ->> 'code' = p_filter ->> 'error_code')
	and (v_before_id is null or v.delivery_id < v_before_id)
	and (v_from is null or v.delivery_id >= v_from)
	and (v_until is null or v.delivery_id < v_until)
	order by v.delivery_id desc
	limit p_limit;
end
$$;
