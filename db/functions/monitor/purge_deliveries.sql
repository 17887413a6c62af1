create or replace function autopost.purge_deliveries(p_workspace_id text, p_after uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes deliveries that ended before delivery_retention_days. Checks the next 1,000
--          after p_after (null: from the oldest), by id, which is the order of creation. A delivery
--          stays while a stored event names its message: its own, or that of a repeat that it
--          suppressed. With strict events, it stays while any event names it. Locks first, so that a
--          concurrent event counts.
-- Returns: {"purged", "after": for the next call, null at the end}.
-- Locks:   deliveries (skip locked).
-- Reads:   events.
-- Writes:  deliveries.
declare
	v_before timestamptz;
	v_kept interval := autopost.setting_interval('delivery_retention_days');
	v_strict boolean := autopost.events_are_strict();
	v_end uuid;
	v_ids uuid[];
	v_messages uuid[];
	v_gone uuid[];
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := autopost.kept_from('delivery_retention_days');
	v_end := autopost.uuid_v7_of(v_before, '');
	select array_agg(x.delivery_id order by x.delivery_id) into v_ids
	from (
		select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id
			and d.delivery_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000') and d.delivery_id < v_end
		and d.status in ('sent', 'failed_permanent', 'dead', 'deduped')
			and coalesce(d.finished_at, d.updated_at) < v_before
		order by d.delivery_id
		limit 1000
		for update skip locked) x;
	v_messages := array(
		select distinct d.message_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids));
	with named as materialized (
		select u.message_id, t.since
		from unnest(v_messages) u (message_id)
		cross join lateral (
			select e.ts as since from autopost.events e
			where e.workspace_id = p_workspace_id and e.message_id = u.message_id
			order by e.ts
			limit 1) t
	)
	select array_agg(d.delivery_id) into v_gone
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids)
	and not exists (
		select 1 from named t
		where t.message_id = d.message_id and t.since <= coalesce(d.finished_at, d.updated_at) + v_kept)
	and not (v_strict and exists (
		select 1 from autopost.events e where e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id));
	delete from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = any (v_gone);
	return jsonb_build_object('purged', coalesce(cardinality(v_gone), 0), 'after', case when cardinality(v_ids) = 1000
		then v_ids[1000] end);
end
$$;
