create or replace function autopost.receive_push(p_workspace_id text, p_endpoint_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes the posts of one push in one transaction: run, receipts, and enqueue or
--          submission. p_items: an array of 1 to 100 raw payloads. An invalid post is rejected
--          alone and gets no receipt, so that it can be sent again after a correction. A push with
--          a new post has its own run; pushes of duplicates and rejected posts only share one
--          above ingress_drops_per_second.
-- Returns: {"run_id", "results": [...]} in order. status: enqueued, accepted (media are being
--          fetched), duplicate (with the ids of the first answer) or rejected (with "errors":
--          [{"field", "reason", "remedy"}]). "warnings" lists ignored fields (post_warnings).
-- Raises:  AP001 for a wrong argument.
-- Locks:   ingress_receipts (source_ref), messages, channel_gates, ingress_floods, in this order.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.take_request(autopost.push_endpoint(p_workspace_id, p_endpoint_id, p_items), 'push', p_items, true,
		autopost.now_ts());
end
$$;
