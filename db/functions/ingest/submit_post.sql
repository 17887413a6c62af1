create or replace function autopost.submit_post(p_workspace_id text, p_endpoint_id text, p_kind text,
	p_raw_payload jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes one post from a person or a program, in its own run: enqueued at once, or kept as
--          a submission while its media are fetched. p_endpoint_id null: the workspace's only
--          enabled endpoint of kind webhook_push. p_kind: api, command or page. It writes no
--          receipt: the channels drop repeated content.
-- Returns: the answer of enqueue_messages_and_deliveries, or {"status": "accepted",
--          "submission_id", …} if media are fetched first. "warnings" lists ignored fields
--          (post_warnings).
-- Raises:  AP001 for a wrong argument.
-- Locks:   messages, channel_gates.
-- Writes:  ingest_runs, submissions, messages, deliveries, channel_gates, events.
declare
	v_endpoint_id text := p_endpoint_id;
	v_run_id uuid;
	v_errors jsonb;
	v_answer jsonb;
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
	v_run_id := autopost.open_run(p_workspace_id, p_kind, v_endpoint_id, null);
	v_errors := autopost.post_errors(p_workspace_id, p_raw_payload);
	v_answer := case when v_errors <> '[]' then jsonb_build_object('status', 'rejected', 'run_id', v_run_id, 'errors',
		v_errors)
		else autopost.take_posts(p_workspace_id, v_endpoint_id, p_kind,
			jsonb_build_array(jsonb_build_object('raw', p_raw_payload, 'trace_id', autopost.new_id())), v_run_id,
				autopost.now_ts()) -> 0 end;
	v_answer := (autopost.warned(p_workspace_id, jsonb_build_array(p_raw_payload), array[v_answer]))[1];
	perform autopost.close_run(p_workspace_id, v_run_id, autopost.answer_stats(jsonb_build_array(v_answer)),
		jsonb_build_array(v_answer));
	return v_answer;
end
$$;
