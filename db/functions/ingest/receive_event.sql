create or replace function autopost.receive_event(p_workspace_id text, p_endpoint_id text, p_event jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes one domain event: {"event", "payload", "source_ref"}. A template makes its post.
--          p_endpoint_id null: the workspace's only enabled endpoint of kind webhook_push.
--          The three events of Global X go to the X channel of the workspace; others are routed by
--          the tags of their event type. A source_ref counts once per endpoint while its receipt
--          lives.
-- Returns: {"run_id", "submission_id", "message_id", "status"}: pending (waits for a decision),
--          approved, skipped (with "reason": disabled, shadow_mode, or duplicate and the id of the
--          first submission), failed (no X channel), duplicate (a repeated source_ref), or rejected
--          with "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   ingress_receipts (source_ref), event_hashes, quotas, messages, channel_gates, in this order.
-- Writes:  ingest_runs, ingress_receipts, submissions, event_hashes, x_post_config, templates, quotas,
--          events; as enqueue_posts.
declare
	v_endpoint autopost.workspace_endpoints;
	v_facts jsonb;
	v_answer jsonb;
	v_receipt_id uuid := autopost.new_id();
	v_run_id uuid := autopost.new_id();
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_endpoint := autopost.push_endpoint(p_workspace_id, coalesce(p_endpoint_id,
		autopost.only_endpoint(p_workspace_id)), jsonb_build_array(p_event));
	v_facts := autopost.event_facts(p_workspace_id, p_event);
	if v_facts ? 'errors' then
		v_answer := jsonb_build_object('status', 'rejected', 'errors', v_facts -> 'errors');
	else
		if p_event ? 'source_ref' then
			v_answer := autopost.take_receipt(v_endpoint, p_event, v_receipt_id, v_run_id, autopost.now_ts());
		end if;
		if v_answer is null then
			perform autopost.begin_run(p_workspace_id, v_run_id, 'event', v_endpoint.endpoint_id, null);
			perform autopost.ensure_x_config(p_workspace_id) where v_facts ->> 'type' in ('image', 'video', 'combat');
			v_answer := autopost.take_event(v_endpoint, p_event, v_facts, v_run_id) || jsonb_build_object('run_id',
				v_run_id);
			update autopost.ingress_receipts r
			set answer = v_answer
			where r.workspace_id = p_workspace_id and r.receipt_id = v_receipt_id;
		end if;
	end if;
	return jsonb_build_object('run_id', v_run_id) || (autopost.end_request(v_endpoint, 'event', jsonb_build_array(
		coalesce(p_event, 'null')), array[v_answer], v_run_id) #> '{results,0}');
end
$$;
