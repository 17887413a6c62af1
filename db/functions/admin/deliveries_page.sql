create or replace function autopost.read_in_order(p_on boolean) returns void
language plpgsql
as $$
-- Purpose: true makes later plans read an ordered index and stop at a full page; false lets them
--          sort. The planner expects few matches of the security policies, and would sort all rows
--          of a workspace. Sorting is right for few rows without an ordered index. The caller sets
--          enable_sort in its definition, so that the change ends with it.
begin
	perform set_config('enable_sort', case when p_on then 'off' else 'on' end, true);
end
$$;

create or replace function autopost.deliveries_page(p_workspace_id text, p_filter jsonb, p_statuses text[], p_limit int)
	returns setof autopost.list_deliveries
language plpgsql set plan_cache_mode = force_custom_plan
as $$
-- Purpose: the newest deliveries in these statuses (null: all) that match a filter of
--          list_deliveries. The plan is made per call, so that missing keys do not disable an index
--          and the statuses select theirs. See read_in_order.
-- Reads:   list_deliveries (view).
declare
	v_delivery_id uuid := autopost.uuid_in(p_filter, 'delivery_id');
	v_message_id uuid := autopost.uuid_in(p_filter, 'message_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
	v_phases text[]; -- of the statuses: the indexes have these
	v_flying uuid[];
begin
	if p_statuses <@ '{claimed,sending}' then
		v_flying := array(select f.delivery_id from autopost.in_flight(p_workspace_id) f);
	elsif p_statuses is not null then
		v_phases := array(select distinct case when s in ('queued', 'sending') then 'active' else s end
			from unnest(p_statuses) s);
	end if;
	return query
	select v.workspace_id, v.delivery_id, v.message_id, v.channel_id, v.platform, v.target_id, v.status, v.attempt,
		v.due_at, v.scheduled_for, v.next_retry_at, v.provider_message_id, v.sent_at, v.last_error, v.rendered_text,
		v.render_meta, v.unknown_outcomes, v.trace_id, v.ingest_run_id, v.created_at, v.updated_at, v.finished_at
	from autopost.list_deliveries_rows v
	where v.workspace_id = p_workspace_id
	and (v_delivery_id is null or v.delivery_id = v_delivery_id)
	and (v_message_id is null or v.message_id = v_message_id)
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (p_statuses is null or cardinality(p_statuses) > 1 or v.status = p_statuses[1])
	and (p_statuses is null or cardinality(p_statuses) = 1 or v.status = any (p_statuses))
	and (v_flying is null or v.delivery_id = any (v_flying))
	and (v_phases is null or cardinality(v_phases) > 1 or v.phase = v_phases[1])
	and (v_phases is null or cardinality(v_phases) = 1 or v.phase = any (v_phases))
	and (not p_filter ? 'error_code' or v.last_error ->> 'code' = p_filter ->> 'error_code')
	and (v_before_id is null or v.delivery_id < v_before_id)
	and (v_from is null or v.delivery_id >= v_from)
	and (v_until is null or v.delivery_id < v_until)
	order by v.delivery_id desc
	limit p_limit;
end
$$;

create or replace function autopost.channel_deliveries(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_deliveries
language plpgsql
as $$
-- Purpose: the newest deliveries of the channel in the filter: up to p_limit finished, waiting and
--          in flight each.
-- Reads:   list_deliveries (view).
begin
	perform autopost.read_in_order(true);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter,
		'{sent,deduped,failed_permanent,dead}', p_limit) d;
	perform autopost.read_in_order(false);
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{queued,retry}', p_limit) d;
	return query select d.* from autopost.deliveries_page(p_workspace_id, p_filter, '{claimed,sending}', p_limit) d;
end
$$;

create or replace function autopost.failed_deliveries(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_deliveries
language plpgsql
as $$
-- Purpose: the newest failed or retrying deliveries that match a filter, up to p_limit per status.
--          Error codes have no index: row-level security would prevent its use.
-- Reads:   list_deliveries (view).
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
-- Purpose: the messages with a delivery in this status and for this channel (either may be null),
--          newest first. Null for more than 2,000 deliveries: then many of the newest messages
--          match, and a scan finds them.
-- Reads:   deliveries.
declare
	v_ids uuid[];
begin
	if p_status = 'sent' and p_channel_id is null then
		return null;
	elsif p_status is not null then
		v_ids := array(select d.message_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.status = p_status
				and d.phase = case when p_status in ('queued', 'sending') then 'active' else p_status end
				and (p_channel_id is null or d.channel_id = p_channel_id) limit 2001);
	else
		v_ids := array(
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
					and d.phase in ('sent', 'deduped', 'failed_permanent', 'dead') limit 2001)
			union all
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
					and d.phase in ('active', 'retry') and d.status <> 'sending' limit 2001)
			union all
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
					and d.phase in ('active', 'retry') and d.status = 'sending' limit 2001)
			union all
			(select d.message_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.phase = 'claimed' and d.channel_id = p_channel_id
				limit 2001));
	end if;
	return case when cardinality(v_ids) <= 2000 then array(select distinct u.id from unnest(v_ids) u (id)
		order by u.id desc) end;
end
$$;
