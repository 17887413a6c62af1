create or replace function autopost.enqueue_webhooks(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: reads the next events of a workspace, at most 5,000 that are reported, and queues them
--          for its result webhooks. No event is missed, even if its transaction commits late
--          (begin_reading). An event that is read twice is queued once. A read starts at most once
--          in webhook_poll_ms, by any caller.
-- Returns: {"read", "queued", "more": true to call again at once, "busy": another caller is
--          reading}.
-- Locks:   webhook_cursors (skip locked).
-- Reads:   events, result_webhooks, channels, messages, deliveries, fanout_jobs.
-- Writes:  webhook_sends, webhook_cursors.
declare
	v_most constant int := 5000;
	v_cursor autopost.webhook_cursors;
	v_events autopost.events[];
	v_queued int := 0;
	v_more boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.start_cursor(p_workspace_id);
	select c.* into v_cursor from autopost.webhook_cursors c
		where c.workspace_id = p_workspace_id for no key update of c skip locked;
	if v_cursor.workspace_id is null then
		return '{"read": 0, "queued": 0, "more": false, "busy": true}';
	elsif v_cursor.position_at is null
		and v_cursor.read_at > autopost.now_ts() - autopost.setting_interval('webhook_poll_ms') then
		return '{"read": 0, "queued": 0, "more": false, "busy": false}';
	elsif v_cursor.position_at is null then
		v_cursor := autopost.begin_reading(v_cursor);
	end if;
	v_events := autopost.events_to_send(p_workspace_id, v_cursor.position_at, v_cursor.position_id, v_most);
	v_more := cardinality(v_events) = v_most;
	if v_events <> '{}' then
		v_queued := autopost.queue_results(p_workspace_id, null, v_events);
	end if;
	update autopost.webhook_cursors c
	set done_at = case when v_more then c.done_at else v_cursor.next_done_at end, next_done_at = v_cursor.next_done_at,
		mark_xid = v_cursor.mark_xid, mark_at = v_cursor.mark_at, read_at = v_cursor.read_at,
		position_at = case when v_more then v_events[v_most].ts end, position_id = case
			when v_more then v_events[v_most].id end
	where c.workspace_id = p_workspace_id;
	return jsonb_build_object('read', cardinality(v_events), 'queued', v_queued, 'more', v_more, 'busy', false);
end
$$;
