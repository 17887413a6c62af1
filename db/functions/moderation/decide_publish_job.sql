create or replace function autopost.decide_publish_job(p_workspace_id text, p_job_id text, p_platform text,
	p_decision text, p_approval jsonb, p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: approves or rejects a file job by a person or a program. p_approval, all optional: {"digest": of the job
--          that the person saw, "source": api, page or command, "nonce": counts once}. A decision that comes before
--          the job waits for it. An approval of a failed job tries it again. After a rejection only new content
--          opens the job.
-- Returns: {"applied": true, "status", "approvals", "needed"}; the status of a job without a payload is "unseen". Or
--          {"applied": false, "reason", "status"}: decided (approved before), published, publishing, rejected,
--          unknown_outcome, digest_changed, own_approval, repeated, nonce_used.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, audit_heads, in this order.
-- Reads:   platforms, workspaces.
-- Writes:  approvals, publish_jobs, events (filebus_*), admin_audit_log.
declare
	v_act jsonb;
	v_approval jsonb := coalesce(p_approval, '{}');
	v_job autopost.publish_jobs;
	v_row autopost.approvals;
	v_twin autopost.approvals;
	v_reason text;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('approval', jsonb_typeof(v_approval) = 'object');
	if coalesce(p_decision not in ('approve', 'reject'), true) then
		perform autopost.raise_argument('decision', format('must be approve or reject, got %s',
			coalesce(p_decision, 'null')), 'pass approve or reject');
	end if;
	perform autopost.check_job_name(p_job_id, p_platform);
	v_job := autopost.lock_job(p_workspace_id, p_job_id, p_platform);
	select a.* into v_twin from autopost.approvals a
	where a.workspace_id = p_workspace_id and a.subject = 'job:' || p_job_id and a.platform = p_platform
		and a.nonce = v_approval ->> 'nonce';
	v_reason := case
		when v_twin.approval_id is not null then case when (v_twin.decision, v_twin.approver) = (p_decision, p_operator)
			then 'repeated' else 'nonce_used' end
		when v_job.digest is distinct from v_approval ->> 'digest' and v_approval ->> 'digest' is not null
			then 'digest_changed'
		when p_decision = 'approve' and v_job.status = 'approved' then 'decided'
		when p_decision = 'approve' and p_operator = v_job.prepared_by
			and autopost.approvals_needed(p_workspace_id) > 1 then 'own_approval'
		else autopost.job_refusal(v_job, null) end;
	if v_reason is not null then
		return jsonb_strip_nulls(jsonb_build_object('applied', false, 'reason', v_reason, 'status',
			coalesce(v_job.status, 'unseen')));
	end if;
	v_row.workspace_id := p_workspace_id;
	v_row.subject := 'job:' || p_job_id;
	v_row.platform := p_platform;
	v_row.nonce := coalesce(v_approval ->> 'nonce', gen_random_uuid()::text);
	v_row.source := coalesce(v_approval ->> 'source', 'sql');
	v_row.approver := p_operator;
	v_row.decision := p_decision;
	v_row.reason := p_reason;
	v_answer := autopost.take_job_decision(v_job, v_row);
	perform autopost.audit(p_workspace_id, p_decision || '_publish_job', 'job:' || p_job_id || '/' || p_platform, v_act,
		jsonb_build_object('status', v_job.status, 'digest', v_job.digest), jsonb_build_object('decision', p_decision,
		'status', v_answer -> 'status', 'source', v_row.source));
	return v_answer;
end
$$;
