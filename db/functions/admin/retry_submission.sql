create or replace function autopost.retry_event_delivery(p_submission autopost.submissions, p_act jsonb,
	p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Purpose: queues the failed delivery of an enqueued event again.
-- Returns: as retry_submission.
-- Writes:  as manual_requeue; admin_audit_log.
declare
	v_delivery autopost.deliveries;
	v_answer jsonb;
begin
	select d.* into v_delivery from autopost.event_delivery(p_submission) d;
	if v_delivery.delivery_id is null or v_delivery.status not in ('failed_permanent', 'dead') then
		return jsonb_strip_nulls(jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'not_failed',
			'status',
			p_submission.status, 'decision', autopost.decision_of(p_submission)));
	elsif not p_dry_run then
		v_answer := autopost.manual_requeue(p_submission.workspace_id, array[v_delivery.delivery_id],
			p_act ->> 'operator',
			p_act ->> 'reason') #> '{results,0}';
		if v_answer -> 'applied' = 'false' then
			return jsonb_build_object('applied', false, 'dry_run', false, 'reason', v_answer -> 'reason');
		end if;
		perform autopost.audit(p_submission.workspace_id, 'x_post_event_retry', 'submission:'
			|| p_submission.submission_id,
			p_act, jsonb_build_object('status', v_delivery.status), '{"status": "retry"}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', jsonb_build_object('status',
		v_delivery.status, 'attempt', v_delivery.attempt), 'after', jsonb_build_object('status', 'retry', 'attempt',
		v_delivery.attempt));
end
$$;

create or replace function autopost.event_twin(p_submission autopost.submissions) returns jsonb
language plpgsql stable
as $$
-- Purpose: the delivery by which the X channel has the content of an enqueued event that made no
--          delivery. null if the channel would take it now, by another text, or because the dedup
--          window is over, for example.
-- Returns: {"delivery_id", "status", "sent_at", "again_at"}.
-- Reads:   channels, deliveries.
declare
	v_channel autopost.channels;
	v_twin jsonb;
begin
	if autopost.event_facts(p_submission.workspace_id, p_submission.event) #> '{raw,text}'
		is distinct from p_submission.raw_payload -> 'text' and p_submission.decision is null then
		return null;
	end if;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_submission.workspace_id and c.channel_id = autopost.x_channel(p_submission.workspace_id);
	v_twin := autopost.twin_of(p_submission.workspace_id, v_channel, p_submission.message_id) -> 'twin';
	return case when (v_twin ->> 'again_at')::timestamptz > autopost.now_ts() or v_twin -> 'sent_at' = 'null'
		then v_twin end;
end
$$;

create or replace function autopost.retry_submission(p_workspace_id text, p_submission_id uuid, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: failed -> fetching, by an operator: the media of the post are fetched again, with all
--          attempts. A fetching one is tried now instead of at its next attempt. A skipped or expired
--          one is evaluated again: it waits for a decision if it is moderated. A rejected one is
--          final, and one of a file job: approve the job again. An event is evaluated again, and goes out even in
--          mode shadow; the failed delivery
--          of an enqueued event is queued again. One without a delivery is evaluated again, unless the X
--          channel still has its content.
-- Returns: {"applied": true, "dry_run", "before": {"status", "attempt"}, "after"}, or {"applied":
--          false, "dry_run", "reason"}: unknown_submission, not_failed (with "status" and "decision"),
--          for an event also duplicate (with the submission that has its hash, or the delivery by
--          which the channel has its content), invalid (with "errors"), and what manual_requeue says.
-- Raises:  AP001 without operator or reason.
-- Locks:   submissions, event_hashes, messages, channel_gates, audit_heads, in this order; for a
--          delivery as manual_requeue.
-- Writes:  submissions, event_hashes, admin_audit_log; as enqueue_posts and manual_requeue.
declare
	v_act jsonb;
	v_submission autopost.submissions;
	v_before jsonb;
	v_answer jsonb;
	v_unsent boolean; -- an event that was enqueued, but made no delivery
	v_after constant jsonb := '{"status": "fetching", "attempt": 0}';
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('submission_id', p_submission_id is not null);
	if not p_dry_run then
		perform 1 from autopost.submissions s where s.workspace_id = p_workspace_id
			and s.submission_id = p_submission_id for no key update of s;
	end if;
	select s.* into v_submission from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id;
	v_unsent := v_submission.kind = 'event' and v_submission.status = 'enqueued'
		and not exists (select 1 from autopost.event_delivery(v_submission));
	if v_submission.kind = 'event' and v_submission.status = 'enqueued' and not v_unsent then
		return autopost.retry_event_delivery(v_submission, v_act, p_dry_run);
	elsif v_unsent and autopost.event_twin(v_submission) is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'duplicate', 'delivery_id',
			autopost.event_twin(v_submission) -> 'delivery_id');
	elsif v_submission.submission_id is null or v_submission.kind = 'file' or v_submission.event_facts ? 'backfill'
		or v_submission.claim_token is not null
		or (v_submission.status not in ('fetching', 'failed', 'skipped', 'expired') and not v_unsent) then
		return jsonb_strip_nulls(jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_submission.submission_id is null then 'unknown_submission' else 'not_failed' end, 'status',
			v_submission.status, 'decision', autopost.decision_of(v_submission)));
	end if;
	if v_submission.kind = 'event' and v_submission.status <> 'fetching' and not p_dry_run then
		v_answer := autopost.event_again(v_submission);
		if v_answer is not null then
			return jsonb_build_object('applied', false, 'dry_run', p_dry_run) || v_answer;
		end if;
	end if;
	v_before := jsonb_build_object('status', v_submission.status, 'attempt', v_submission.attempt);
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.submissions s
		set status = 'fetching', attempt = 0, next_attempt_at = v_now, last_error = null,
			updated_at = v_now, digest = null, answer = null, message_id = case when not v_unsent
			then s.message_id end
		where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
		returning s.* into v_submission;
		perform autopost.start_event(v_submission) where v_submission.kind = 'event';
		perform autopost.audit(p_workspace_id, case v_submission.kind when 'event' then 'x_post_event_retry'
			else 'retry_submission' end, 'submission:' || p_submission_id, v_act, v_before, v_after);
		perform pg_notify('autopost_wake', 'submissions');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', v_after);
end
$$;
