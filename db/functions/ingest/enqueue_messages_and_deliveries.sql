create or replace function autopost.enqueue_messages_and_deliveries(
	p_workspace_id text, p_endpoint_id text, p_kind text, p_raw_payload jsonb, p_now timestamptz default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: normalises, hashes, checks, routes, deduplicates, renders and enqueues one post, in one
--          transaction and its own run. Its media must already be in the media store (blob_ref);
--          receive_push takes posts with URLs to fetch. p_kind: push, pull, api, command, event,
--          file or page. Only the owner can set the deciding time p_now.
-- Returns: {"status": "enqueued" | "duplicate" | "rejected", "run_id", "trace_id", "message_id",
--          "enqueued", "deduped", "invalid", "skipped", "fanout", "deliveries": [first 1,000]}; a
--          rejected post has "errors". Channels that wait for a decision are counted in "pending",
--          with "submission_id". A post of a moderated endpoint has status accepted.
-- Raises:  AP001 for a wrong argument.
-- Locks:   messages, channel_gates.
-- Writes:  ingest_runs, messages, deliveries, channel_gates, events.
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
	v_run_id uuid;
	v_answers jsonb;
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
	v_run_id := autopost.open_run(p_workspace_id, p_kind, p_endpoint_id, null);
	v_answers := autopost.take_ready(p_workspace_id, p_endpoint_id, p_kind, (
		select coalesce(jsonb_agg(jsonb_build_object('raw', case when jsonb_typeof(i.value) = 'object'
			and i.value ? 'raw_payload' then i.value -> 'raw_payload' else i.value end,
			'trace_id', autopost.new_id()) order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i), v_run_id, v_now);
	perform autopost.close_run(p_workspace_id, v_run_id, autopost.answer_stats(v_answers), v_answers);
	return v_answers;
end
$$;
