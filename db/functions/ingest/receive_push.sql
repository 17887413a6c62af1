create or replace function autopost.receive_push(p_workspace_id text, p_endpoint_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Takes the posts of one push: run, receipts, and enqueue or submission, in one transaction. p_items: an array of 1 to 100 raw
-- payloads; a wrong one is rejected alone, and gets no receipt, so that it may come again corrected.
-- Returns {"run_id", "results": [...]} in order: status enqueued, accepted (media are being fetched), duplicate (with the first
-- answer's ids) or rejected (with "errors": [{"field", "reason", "remedy"}]); "warnings" names what nobody heeds (post_warnings). What takes something in
-- has a run of its own; repeats alone share one above ingress_drops_per_second.
-- Raises AP001 for a wrong argument. Locks, in this order: ingress_receipts (source_ref), messages, channel_gates, ingress_floods.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.take_push(autopost.push_endpoint(p_workspace_id, p_endpoint_id, p_items), p_items);
end
$$;
