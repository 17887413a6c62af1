create or replace function autopost.with_blob_refs(p_raw jsonb, p_media jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the raw payload with references to the media store, and with the names of fetched files
--          that have none. p_media: [{"index", "blob_ref", "filename"}].
select case when coalesce(p_media, '[]') = '[]' then p_raw else p_raw || jsonb_build_object('media', (
	select jsonb_agg(case when f.value is null then m.value
		else m.value || jsonb_build_object('blob_ref', f.value -> 'blob_ref')
			|| case when f.value ->> 'filename' <> '' then jsonb_build_object('meta',
				jsonb_build_object('filename', f.value -> 'filename') || coalesce(m.value -> 'meta', '{}')) else '{}' end end
		order by m.ordinality)
	from jsonb_array_elements(p_raw -> 'media') with ordinality m
	left join jsonb_array_elements(p_media) f on (f.value ->> 'index')::int = m.ordinality - 1)) end
$$;

create or replace function autopost.without_urls(p_raw jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the raw payload without the URLs of media whose content is in the media store.
select case when not coalesce(p_raw -> 'media' @? '$[*].url', false) then p_raw else p_raw || jsonb_build_object('media', (
	select jsonb_agg(case when m.value ? 'blob_ref' then m.value - 'url' else m.value end order by m.ordinality)
	from jsonb_array_elements(p_raw -> 'media') with ordinality m)) end
$$;

create or replace function autopost.fail_submission(p_submission autopost.submissions, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: handles a failed fetch: a retry by the retry policy of its code, or the end. A failure
--          that costs no attempt is retried without a limit.
-- Writes:  submissions, events (submission_failed).
declare
	v_error jsonb := autopost.normalised_error(p_error);
	v_policy autopost.retry_policies := autopost.retry_policy(p_submission.workspace_id, '*',
		v_error ->> 'code');
	-- Eight tries by the default retry policy take about four minutes.
	v_final boolean := v_error ->> 'category' = 'PERMANENT' or (v_policy.costs_attempt and p_submission.attempt >= 8)
		or (v_error ->> 'code' = 'media_fetch_404' and p_submission.last_error ->> 'code' = 'media_fetch_404');
	v_next timestamptz := autopost.now_ts() + autopost.retry_delay(v_policy,
		p_submission.attempt, (v_error ->> 'retry_after_ms')::numeric, random()::numeric);
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.submissions s
	set status = case when v_final then 'failed' else s.status end,
		attempt = s.attempt - (not v_policy.costs_attempt)::int, claim_token = null, lease_until = null,
		next_attempt_at = v_next, last_error = v_error, updated_at = v_now
	where s.workspace_id = p_submission.workspace_id and s.submission_id = p_submission.submission_id;
	if v_final then
		perform autopost.emit_note(p_submission.workspace_id, 'submission_failed', 'error', null, null, v_error,
			jsonb_build_object(
			'submission_id', p_submission.submission_id, 'run_id', p_submission.run_id, 'trace_id',
				p_submission.trace_id, 'attempt', p_submission.attempt));
		return '{"applied": true, "status": "failed"}';
	end if;
	return jsonb_build_object('applied', true, 'status', 'fetching', 'next_attempt_at', v_next);
end
$$;

create or replace function autopost.enqueue_submission(p_submission autopost.submissions) returns jsonb
language plpgsql
as $$
-- Purpose: enqueues a locked submission whose media are stored. A moderated one was approved.
-- Returns: {"applied": true, "status", and the answer of the enqueue}.
-- Locks:   messages, channel_gates, in this order.
-- Writes:  submissions, ingest_runs; as enqueue_posts.
declare
	v_answer jsonb := autopost.without_x_channel(p_submission);
	v_now timestamptz;
begin
	if v_answer is not null then
		return autopost.fail_submission(p_submission, v_answer);
	end if;
	v_answer := autopost.enqueue_posts(p_submission.workspace_id, jsonb_build_array(
		autopost.submission_item(p_submission)), p_submission.run_id, autopost.now_ts()) -> 0;
	if v_answer ->> 'status' = 'rejected' then
		return autopost.fail_submission(p_submission,
			jsonb_build_object('category', 'PERMANENT', 'code', 'rejected', 'message', v_answer -> 'errors'));
	end if;
	v_now := autopost.now_ts();
	update autopost.submissions s
	set status = 'enqueued', claim_token = null, lease_until = null, message_id = (v_answer ->> 'message_id')::uuid,
		answer = v_answer - 'deliveries', last_error = null,
		raw_payload = autopost.without_urls(p_submission.raw_payload), updated_at = v_now
	where s.workspace_id = p_submission.workspace_id and s.submission_id = p_submission.submission_id;
	perform autopost.close_run(p_submission.workspace_id, p_submission.run_id,
		autopost.answer_stats(jsonb_build_array(v_answer)) - 'accepted', null);
	return (v_answer - 'deliveries') || jsonb_build_object('applied', true);
end
$$;

create or replace function autopost.commit_submission(p_workspace_id text, p_submission_id uuid, p_claim_token text,
	p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commits the outcome of fetching a submission's media. p_outcome: {"ok": true, "media":
--          [{"index", "blob_ref", "filename" if the source names it}]} enqueues it in this
--          transaction and forgets its URLs, or makes it wait for a decision; {"ok": false, "error":
--          {…}} retries it later or fails it.
-- Returns: {"applied": true, "status", and the answer of the enqueue}, or {"applied": false,
--          "reason": "stale"}. Repeatable.
-- Raises:  AP001 for a wrong argument.
-- Locks:   submissions, messages, channel_gates, in this order.
-- Writes:  submissions; as enqueue_posts.
declare
	v_submission autopost.submissions;
	v_raw jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('submission_id', p_submission_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> ''),
		autopost.require_argument('outcome', jsonb_typeof(p_outcome) = 'object');
	select s.* into v_submission from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	for no key update of s;
	if v_submission.claim_token is distinct from p_claim_token then
		return case when v_submission.answer is null then '{"applied": false, "reason": "stale"}'
			else v_submission.answer || jsonb_build_object('applied', false, 'reason', 'stale', 'status',
				v_submission.status) end;
	elsif p_outcome -> 'ok' is distinct from 'true' then
		return autopost.fail_submission(v_submission, p_outcome -> 'error');
	end if;
	v_raw := autopost.with_blob_refs(v_submission.raw_payload, p_outcome -> 'media');
	if autopost.unfetched_media(v_raw) or exists (select 1 from jsonb_array_elements(p_outcome -> 'media') m
		where m.value ->> 'blob_ref' !~ '^sha256:[0-9a-f]{64}$') then
		perform autopost.raise_argument('outcome', 'lacks the blob_ref of a medium',
			'pass {"media": [{"index": 0, "blob_ref": "sha256:…"}]} for every medium that has a URL');
	end if;
	if v_submission.moderated and v_submission.decision is null then
		v_answer := autopost.without_x_channel(v_submission);
		if v_answer is not null then
			return autopost.fail_submission(v_submission, v_answer);
		end if;
		v_answer := autopost.prepare_post(p_workspace_id, jsonb_build_object('raw', v_raw));
		if v_answer ? 'errors' then
			return autopost.fail_submission(v_submission,
				jsonb_build_object('category', 'PERMANENT', 'code', 'rejected', 'message', v_answer -> 'errors'));
		end if;
		perform autopost.await_decision(p_workspace_id, p_submission_id, v_raw);
		return '{"applied": true, "status": "pending"}';
	end if;
	v_submission.raw_payload := v_raw;
	return autopost.enqueue_submission(v_submission);
end
$$;
