create or replace function autopost.decision_of(p_submission autopost.submissions) returns jsonb
language sql stable
as $$
-- Purpose: who decided about a submission, when and how; null before a decision.
select case when p_submission.decision is not null then jsonb_strip_nulls(jsonb_build_object(
	'decision', p_submission.decision, 'by', p_submission.decided_by, 'at', autopost.utc(p_submission.decided_at),
	'source', p_submission.decision_source, 'reason', p_submission.decision_reason)) end
$$;

create or replace function autopost.refuse_decision(p_submission autopost.submissions, p_decision text, p_approval jsonb,
	p_operator text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the answer to a decision that cannot be taken; null if it can. p_submission is locked.
-- Reads:   approvals, workspaces.
declare
	v_twin autopost.approvals;
begin
	if p_submission.submission_id is null then
		return '{"applied": false, "reason": "unknown_submission"}';
	end if;
	select a.* into v_twin from autopost.approvals a
	where a.workspace_id = p_submission.workspace_id and a.subject = 'submission:' || p_submission.submission_id
		and a.platform = '*' and a.nonce = p_approval ->> 'nonce';
	if v_twin.approval_id is not null then
		return jsonb_strip_nulls(jsonb_build_object('applied', false, 'reason', case when v_twin.decision = p_decision
			and v_twin.approver = p_operator then 'repeated' else 'nonce_used' end, 'status', p_submission.status,
			'decision', autopost.decision_of(p_submission), 'message_id', p_submission.message_id));
	elsif p_submission.status not in ('pending', 'fetching') or not p_submission.moderated
		or p_submission.decision is not null then
		return jsonb_strip_nulls(jsonb_build_object('applied', false, 'reason', case
			when p_submission.decision is not null then 'decided' else 'not_pending' end, 'status', p_submission.status,
			'decision', autopost.decision_of(p_submission), 'message_id', p_submission.message_id));
	elsif p_decision = 'approve' and p_operator in (p_submission.author, p_submission.edited_by)
		and autopost.approvals_needed(p_submission.workspace_id) > 1 then
		return jsonb_build_object('applied', false, 'reason', 'own_approval', 'status', p_submission.status);
	end if;
	return null;
end
$$;

create or replace function autopost.approvals_needed(p_workspace_id text) returns int
language plpgsql stable
as $$
-- Purpose: how many people must approve a post.
begin
	return (select w.approvals_needed from autopost.workspaces w where w.workspace_id = p_workspace_id);
end
$$;

create or replace function autopost.approve_submission(p_submission autopost.submissions, p_approval jsonb, p_by jsonb)
	returns jsonb
language plpgsql
as $$
-- Purpose: takes an approval of a locked submission. The last one that is needed enqueues it. A plan
--          that differs from the stored one, by a changed template for example, voids what was
--          approved before.
-- Returns: as decide_submission.
-- Writes:  submissions, approvals, events (submission_approved); as enqueue_posts.
declare
	v_submission autopost.submissions := p_submission;
	v_plan jsonb := autopost.submission_plan(p_submission);
	v_needed int := autopost.approvals_needed(p_submission.workspace_id);
	v_given int;
	v_answer jsonb;
	v_now timestamptz;
begin
	if p_submission.digest is null or autopost.plan_changed(p_submission.plan, v_plan) then
		perform autopost.store_plan(p_submission, v_plan);
		select s.* into v_submission from autopost.submissions s
		where s.workspace_id = p_submission.workspace_id and s.submission_id = p_submission.submission_id;
	end if;
	if p_approval ->> 'digest' <> v_submission.digest then
		return jsonb_build_object('applied', false, 'reason', 'digest_changed', 'status', v_submission.status, 'digest',
			v_submission.digest, 'plan', v_submission.plan);
	end if;
	perform autopost.record_approval(v_submission, 'approve', p_approval, p_by);
	select count(distinct a.approver) into v_given from autopost.approvals a
	where a.workspace_id = v_submission.workspace_id and a.subject = 'submission:' || v_submission.submission_id
		and a.decision = 'approve' and a.voided_at is null;
	if v_given < v_needed then
		return jsonb_build_object('applied', true, 'status', v_submission.status, 'approvals', v_given, 'needed', v_needed);
	end if;
	v_now := autopost.now_ts();
	update autopost.submissions s
	set decision = 'approve', decided_by = p_by ->> 'operator', decided_at = v_now,
		decision_source = p_approval ->> 'source', status = case when s.status = 'pending' then 'new' else s.status end,
		updated_at = v_now
	where s.workspace_id = v_submission.workspace_id and s.submission_id = v_submission.submission_id
	returning s.* into v_submission;
	perform autopost.note_submission(v_submission, 'submission_approved', p_by || jsonb_build_object('digest',
		v_submission.digest, 'source', p_approval -> 'source'));
	v_answer := case when v_submission.status = 'fetching' then '{"applied": true, "status": "fetching"}'
		else autopost.enqueue_submission(v_submission) end;
	return v_answer || jsonb_build_object('approvals', v_given, 'needed', v_needed);
end
$$;

create or replace function autopost.record_approval(p_submission autopost.submissions, p_decision text, p_approval jsonb,
	p_by jsonb) returns void
language plpgsql
as $$
-- Purpose: stores a decision of one person in the ledger.
-- Writes:  approvals.
begin
	insert into autopost.approvals (workspace_id, approval_id, subject, nonce, source, approver, decision, digest,
		reason, decided_at)
	values (p_submission.workspace_id, autopost.new_id(), 'submission:' || p_submission.submission_id,
		coalesce(p_approval ->> 'nonce', gen_random_uuid()::text), p_approval ->> 'source', p_by ->> 'operator',
		p_decision, p_submission.digest, autopost.redact(p_by ->> 'reason'), autopost.now_ts());
end
$$;

create or replace function autopost.decide_submission(p_workspace_id text, p_submission_id uuid, p_decision text,
	p_approval jsonb, p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: approves or rejects a moderated submission. The first decision wins. p_approval, all
--          optional: {"digest": of the plan that the person saw, "source": api, page, command,
--          telegram, max or file:SOURCE, "nonce": counts once}. p_operator identifies the person:
--          user:ID, key:ID, telegram:user:ID, max:user:ID or file:SOURCE. An approval before the media
--          are stored acts when they are.
-- Returns: {"applied": true, "status", "approvals", "needed", and the answer of the enqueue}; or
--          {"applied": false, "reason"}: unknown_submission, decided or not_pending (with "status" and
--          "decision": {"decision", "by", "at", "source", "reason"}), digest_changed (with "digest"
--          and "plan"), own_approval, repeated, nonce_used.
-- Raises:  AP001 for a wrong argument.
-- Locks:   submissions, messages, channel_gates, audit_heads, in this order.
-- Writes:  submissions, approvals, events (submission_approved, submission_rejected),
--          admin_audit_log; as enqueue_posts.
declare
	v_act jsonb;
	v_approval jsonb := coalesce(p_approval, '{}');
	v_submission autopost.submissions;
	v_answer jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('submission_id', p_submission_id is not null),
		autopost.require_argument('approval', jsonb_typeof(v_approval) = 'object');
	if coalesce(p_decision not in ('approve', 'reject'), true) then
		perform autopost.raise_argument('decision', format('must be approve or reject, got %s',
			coalesce(p_decision, 'null')), 'pass approve or reject');
	end if;
	v_approval := jsonb_build_object('source', 'sql') || jsonb_strip_nulls(v_approval);
	select s.* into v_submission from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	for no key update of s;
	v_answer := autopost.refuse_decision(v_submission, p_decision, v_approval, p_operator);
	if v_answer is not null then
		return v_answer;
	elsif p_decision = 'approve' then
		v_answer := autopost.approve_submission(v_submission, v_approval, v_act);
		if v_answer -> 'applied' = 'false' then
			return v_answer;
		end if;
	else
		perform autopost.record_approval(v_submission, 'reject', v_approval, v_act);
		v_now := autopost.now_ts();
		update autopost.submissions s
		set status = 'rejected', decision = 'reject', decided_by = p_operator, decided_at = v_now,
			decision_source = v_approval ->> 'source', decision_reason = autopost.redact(p_reason), claim_token = null,
			lease_until = null, updated_at = v_now
		where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id;
		perform autopost.note_submission(v_submission, 'submission_rejected', v_act || jsonb_build_object('source',
			v_approval -> 'source'));
		v_answer := '{"applied": true, "status": "rejected"}';
	end if;
	perform autopost.audit(p_workspace_id, autopost.decision_action(v_submission, p_decision),
		'submission:' || p_submission_id, v_act, jsonb_build_object('status', v_submission.status, 'digest',
			v_submission.digest), jsonb_build_object('decision', p_decision, 'status', v_answer -> 'status', 'digest',
			v_approval -> 'digest', 'source', v_approval -> 'source'));
	return v_answer;
end
$$;

create or replace function autopost.decision_action(p_submission autopost.submissions, p_decision text) returns text
language sql immutable
as $$
-- Purpose: the audit action of a decision.
select case when p_submission.kind = 'event' then 'x_post_event_' || p_decision else p_decision || '_submission' end
$$;
