create or replace function autopost.extend_submission(p_workspace_id text, p_submission_id uuid, p_claim_token text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: renews the lease of a submission during a long fetch, for submission_lease_seconds from
--          now. Repeatable.
-- Returns: {"applied": true, "lease_until"}, or {"applied": false, "reason": "stale"}: another
--          worker has it, or it is decided.
-- Locks:   submissions.
-- Writes:  submissions.
declare
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('submission_id', p_submission_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	perform 1 from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	for no key update of s;
	v_until := autopost.now_ts() + autopost.setting_interval('submission_lease_seconds');
	update autopost.submissions s set lease_until = v_until
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id and s.claim_token = p_claim_token
		and s.status = 'fetching';
	return case when found then jsonb_build_object('applied', true, 'lease_until', v_until)
		else '{"applied": false, "reason": "stale"}' end;
end
$$;
