create or replace function autopost.enqueue_messages_and_deliveries(
	p_workspace_id text, p_endpoint_id text, p_kind text, p_raw_payload jsonb, p_now timestamptz default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: normalises, hashes, checks, routes, deduplicates, renders and enqueues one post, in one
--          transaction and its own run. Its media must already be in the media store (blob_ref);
--          receive_push takes posts with URLs to fetch. p_kind: push, pull, api, command, event,
--          file or page. A source_ref counts once per endpoint while its receipt lives. Only the
--          owner can set the deciding time p_now.
-- Returns: {"status": "enqueued" | "duplicate" | "rejected", "run_id", "trace_id", "message_id",
--          "enqueued", "deduped", "invalid", "skipped", "fanout", "deliveries": [first 1,000]}; a
--          rejected post has "errors". A repeated source_ref is duplicate, with the ids of the
--          first answer and without "deliveries". Channels that wait for a decision are counted in
--          "pending", with "submission_id". A post of a moderated endpoint has status accepted.
-- Raises:  AP001 for a wrong argument.
-- Locks:   ingress_receipts (source_ref), messages, channel_gates, in this order.
-- Writes:  ingest_runs, ingress_receipts, messages, deliveries, channel_gates, events.
begin
	return autopost.enqueue_messages_and_deliveries_batch(p_workspace_id, p_endpoint_id, p_kind,
		jsonb_build_array(jsonb_build_object('raw_payload', p_raw_payload)), p_now) -> 0;
end
$$;

create or replace function autopost.enqueue_messages_and_deliveries_batch(
	p_workspace_id text, p_endpoint_id text, p_kind text, p_items jsonb, p_now timestamptz default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: enqueue_messages_and_deliveries for many posts in one transaction and run. p_items:
--          [{"raw_payload": {…}}], or the raw payloads. A rejected post does not stop the others.
-- Returns: an array of its answers in the same order.
declare
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_now := autopost.deciding_now(p_now);
	perform autopost.known_sender(p_workspace_id, p_endpoint_id);
	perform autopost.require_array('items', p_items);
	if exists (select 1 from jsonb_array_elements(p_items) i
		where i.value ? 'raw_payload' and jsonb_typeof(i.value) = 'object' and i.value - 'raw_payload' <> '{}') then
		perform autopost.raise_argument('items', 'must have items without fields next to raw_payload',
			'move the fields into the raw_payload');
	end if;
	return autopost.take_request(autopost.known_endpoint(p_workspace_id, p_endpoint_id), p_kind, (
		select coalesce(jsonb_agg(case when jsonb_typeof(i.value) = 'object' and i.value ? 'raw_payload'
			then i.value -> 'raw_payload' else i.value end order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i), false, v_now) -> 'results';
end
$$;
