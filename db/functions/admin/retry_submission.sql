create or replace function autopost.retry_submission(p_workspace_id text, p_submission_id uuid, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: failed -> fetching, by an operator: the media of the post are fetched again, with all
--          attempts. A fetching one is tried now instead of at its next attempt. A skipped or expired
--          one is evaluated again: it waits for a decision if it is moderated. A rejected one is
--          final.
-- Returns: {"applied": true, "dry_run", "before": {"status", "attempt"}, "after"}, or {"applied":
--          false, "dry_run", "reason": "unknown_submission" | "not_failed"}.
-- Raises:  AP001 without operator or reason.
-- Locks:   submissions, audit_heads, in this order.
-- Writes:  submissions, admin_audit_log.
declare
	v_act jsonb;
	v_submission autopost.submissions;
	v_before jsonb;
	v_after constant jsonb := '{"status": "fetching", "attempt": 0}';
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
	if v_submission.submission_id is null or v_submission.claim_token is not null
		or v_submission.status not in ('fetching', 'failed', 'skipped', 'expired') then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_submission.submission_id is null then 'unknown_submission' else 'not_failed' end);
	end if;
	v_before := jsonb_build_object('status', v_submission.status, 'attempt', v_submission.attempt);
	if not p_dry_run then
		update autopost.submissions s
		set status = 'fetching', attempt = 0, next_attempt_at = autopost.now_ts(), last_error = null,
			updated_at = autopost.now_ts(), digest = null
		where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id;
		perform autopost.audit(p_workspace_id, 'retry_submission', 'submission:' || p_submission_id, v_act, v_before,
			v_after);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', v_after);
end
$$;
