create or replace function autopost.submit_post(p_workspace_id text, p_endpoint_id text, p_kind text,
	p_raw_payload jsonb, p_author text default null) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes one post from a person or a program, in its own run: enqueued at once, or kept as
--          a submission while its media are fetched. p_endpoint_id null: the workspace's only
--          enabled endpoint of kind webhook_push. p_kind: api, command or page. A source_ref counts
--          once per endpoint while its receipt lives. Without one, the channels drop repeated
--          content. p_author: identity of the person; where two people must approve, the author
--          is not one of them.
-- Returns: the answer of enqueue_messages_and_deliveries, or {"status": "accepted",
--          "submission_id", …} if media are fetched first. A repeated source_ref is duplicate, with
--          the ids of the first answer and without "deliveries". "warnings" lists ignored fields
--          (post_warnings).
-- Raises:  AP001 for a wrong argument.
-- Locks:   ingress_receipts (source_ref), messages, channel_gates, in this order.
-- Writes:  ingest_runs, ingress_receipts, submissions, messages, deliveries, channel_gates, events.
declare
	v_endpoint_id text := p_endpoint_id;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if coalesce(p_kind not in ('api', 'command', 'page'), true) then
		perform autopost.raise_argument('kind',
			format('must be api, command or page, got %s', coalesce(p_kind, 'null')), 'pass the origin of the post');
	end if;
	if v_endpoint_id is null then
		v_endpoint_id := autopost.only_endpoint(p_workspace_id);
	end if;
	perform autopost.known_sender(p_workspace_id, v_endpoint_id);
	return autopost.take_request(autopost.known_endpoint(p_workspace_id, v_endpoint_id), p_kind,
		jsonb_build_array(p_raw_payload), true, autopost.now_ts(), p_author) -> 'results' -> 0;
end
$$;
