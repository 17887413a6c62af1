create or replace function autopost.manual_requeue_preview(p_workspace_id text, p_delivery_ids uuid[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the answer of manual_requeue for these ids, with "dry_run": true; changes nothing.
-- Raises:  AP001 without ids.
-- Reads:   deliveries, channels.
declare
	v_results jsonb;
	v_count int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_ids', cardinality(p_delivery_ids) > 0);
	select jsonb_agg(autopost.requeue_result(u.id, d.status, o.reason) order by u.n),
		count(*) filter (where o.reason is null)
	into v_results, v_count
	from (select i.id, min(i.n) as n from unnest(p_delivery_ids) with ordinality i (id, n) group by i.id) u
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = u.id
	left join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
	cross join lateral (select autopost.requeue_obstacle(p_workspace_id, row(d.*)::autopost.deliveries,
		row(c.*)::autopost.channels) as reason) o;
	return jsonb_build_object('applied', v_count > 0, 'dry_run', true, 'requeued', v_count, 'results', v_results);
end
$$;
