create or replace function autopost.set_event_strictness(p_on boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '10s'
as $$
-- Purpose: adds (true) or drops (false) the foreign keys of events to deliveries, messages and
--          channels. With them the database refuses an event without its rows, and the removal of
--          a row that an event names. They cost three lookups per event. A daily partition of
--          events then waits for running writers of the three tables. Waits at most 10 s for locks.
--          Works across workspaces. Only the engine may call it.
-- Returns: {"applied": true, "strict"}; or {"applied": false, "strict"} with reason unchanged, busy,
--          or orphans and "detail": the first missing row.
-- Raises:  AP001 without p_on.
-- Locks:   events, deliveries, messages, channels (whole tables).
declare
	v_detail text;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('on', p_on is not null);
	if p_on = autopost.events_are_strict() then
		return jsonb_build_object('applied', false, 'strict', p_on, 'reason', 'unchanged');
	end if;
	if p_on then
		alter table autopost.events
			add constraint events_delivery_fkey foreign key (workspace_id, delivery_id)
				references autopost.deliveries (workspace_id, delivery_id),
			add constraint events_message_fkey foreign key (workspace_id, message_id)
				references autopost.messages (workspace_id, message_id),
			add constraint events_channel_fkey foreign key (workspace_id, channel_id)
				references autopost.channels (workspace_id, channel_id);
	else
		alter table autopost.events
			drop constraint events_delivery_fkey,
			drop constraint events_message_fkey,
			drop constraint events_channel_fkey;
	end if;
	return jsonb_build_object('applied', true, 'strict', p_on);
exception
	when foreign_key_violation then
		get stacked diagnostics v_detail = pg_exception_detail;
		return jsonb_build_object('applied', false, 'strict', false, 'reason', 'orphans', 'detail', v_detail);
	when lock_not_available then
		return jsonb_build_object('applied', false, 'strict', not p_on, 'reason', 'busy');
end
$$;
