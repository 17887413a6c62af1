create or replace function autopost.read_in_order(p_on boolean) returns void
language plpgsql
as $$
-- Whether what is planned from here on reads by an index that has the order asked for, and stops when the page is full. The planner takes
-- the security policies for a rare match, and would read all rows of a workspace to sort them. Where the rows asked for are few, and no index
-- has them in order, they are to be sorted. Who calls this sets enable_sort for itself, so that it ends with that function.
begin
	perform set_config('enable_sort', case when p_on then 'off' else 'on' end, true);
end
$$;

create or replace function autopost.deliveries_page(p_workspace_id text, p_filter jsonb, p_statuses text[], p_limit int) returns setof autopost.list_deliveries
language plpgsql set plan_cache_mode = force_custom_plan
as $$
-- The newest deliveries in these statuses (null: in any) that fit a filter of list_deliveries. Planned anew each time, so that a key that
-- is not given costs no index, and that the statuses choose the index made for them; see read_in_order.
-- Reads: list_deliveries (view).
declare
	v_delivery_id uuid := autopost.uuid_in(p_filter, 'delivery_id');
	v_message_id uuid := autopost.uuid_in(p_filter, 'message_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	return query
	select v.* from autopost.list_deliveries_rows v
	where v.workspace_id = p_workspace_id
	and (v_delivery_id is null or v.delivery_id = v_delivery_id)
	and (v_message_id is null or v.message_id = v_message_id)
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (p_statuses is null or cardinality(p_statuses) > 1 or v.status = p_statuses[1])
	and (p_statuses is null or cardinality(p_statuses) = 1 or v.status = any (p_statuses))
	and (not p_filter ? 'error_code' or v.last_error ->> 'code' = p_filter ->> 'error_code')
	and (v_before_id is null or v.delivery_id < v_before_id)
	and (v_from is null or v.delivery_id >= v_from)
	and (v_until is null or v.delivery_id < v_until)
	order by v.delivery_id desc
	limit p_limit;
end
$$;

create or replace function autopost.channel_deliveries(p_workspace_id text, p_filter jsonb, p_limit int) returns setof autopost.list_deliveries
language plpgsql
as $$
-- The newest deliveries of the channel that a filter names, of each stage of their life p_limit at most.
-- Reads: list_deliveries (view).
begin
	perform autopost.read_in_order(true);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{sent,deduped,failed_permanent,dead}', p_limit) d;
	perform autopost.read_in_order(false);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{queued,retry}', p_limit) d;
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{claimed,sending}', p_limit) d;
end
$$;

create or replace function autopost.failed_deliveries(p_workspace_id text, p_filter jsonb, p_limit int) returns setof autopost.list_deliveries
language plpgsql
as $$
-- The newest deliveries that wait again or failed and fit a filter, of each status p_limit at most. The code of an error has no index of its
-- own: under row-level security none could be asked for it.
-- Reads: list_deliveries (view).
begin
	perform autopost.read_in_order(true);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{failed_permanent}', p_limit) d;
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{dead}', p_limit) d;
	perform autopost.read_in_order(false);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{retry}', p_limit) d;
end
$$;

create or replace function autopost.messages_with(p_workspace_id text, p_status text, p_channel_id text) returns uuid[]
language plpgsql stable
as $$
-- The messages that have a delivery in this status and for this channel, either of which may be null, the newest first; null where they are
-- more than 2,000 deliveries: then so many of the newest messages fit that they are found by looking through them.
-- Reads: deliveries.
declare
	v_ids uuid[];
begin
	if p_status = 'sent' and p_channel_id is null then
		return null;
	elsif p_status is not null then
		v_ids := array(select d.message_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.status = p_status and (p_channel_id is null or d.channel_id = p_channel_id) limit 2001);
	else
		v_ids := array(
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.status in ('sent', 'deduped', 'failed_permanent', 'dead') limit 2001)
			union all
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.status in ('queued', 'retry') limit 2001)
			union all
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.status in ('claimed', 'sending') limit 2001));
	end if;
	return case when cardinality(v_ids) <= 2000 then array(select distinct u.id from unnest(v_ids) u (id) order by u.id desc) end;
end
$$;
