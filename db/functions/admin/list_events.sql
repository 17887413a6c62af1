create or replace function autopost.list_events(p_workspace_id text, p_filter jsonb, p_limit int) returns setof autopost.list_events
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
as $$
-- The newest events that fit, newest first. p_filter keys, all optional: delivery_id, message_id, channel_id, action, since (an instant
-- with offset; that one included). Planned anew each time, so that a key that is not given costs no index.
-- Raises AP001 for an unknown key, a since that is no instant, or a limit out of 1 to 10000. Reads: list_events (view).
declare
	v_since timestamptz := autopost.timestamp_of(p_filter ->> 'since');
	v_message_id uuid := p_filter ->> 'message_id';
	v_deliveries uuid[]; -- of the message: its events are found by them
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, array['delivery_id', 'message_id', 'channel_id', 'action', 'since'], p_limit);
	if p_filter ? 'since' and v_since is null then
		perform autopost.refuse('filter', 'since is no time with an offset', 'write 2026-12-01T10:00:00+03:00');
	end if;
	v_deliveries := array(select d.delivery_id from autopost.deliveries d where d.workspace_id = p_workspace_id and d.message_id = v_message_id);
	return query
	select v.* from autopost.list_events v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'delivery_id' or v.delivery_id = (p_filter ->> 'delivery_id')::uuid)
	and (v_message_id is null or v.delivery_id = any (v_deliveries) or (v.message_id = v_message_id and v.delivery_id is null))
	and (not p_filter ? 'channel_id' or v.channel_id = p_filter ->> 'channel_id')
	and (not p_filter ? 'action' or v.action = p_filter ->> 'action')
	and (v_since is null or v.ts >= v_since)
	order by v.ts desc, v.id desc
	limit p_limit;
end
$$;
