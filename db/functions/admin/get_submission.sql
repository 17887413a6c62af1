create or replace function autopost.get_submission(p_workspace_id text, p_submission_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a submission with the post as it was received and what a decision is about.
-- Returns: {…, "payload", "answer": of the enqueue, "plan": {"renderings", "media"}, "channels": those
--          of a part, "approvals": [{"by", "decision", "at", "source", "digest", "void"}], "needed"};
--          null if the workspace has no such submission.
-- Reads:   list_submissions (view), submissions, approvals, workspaces.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('submission_id', p_submission_id is not null);
	select to_jsonb(v) - 'workspace_id' || jsonb_build_object('payload', s.raw_payload, 'answer', s.answer,
		'plan', s.plan, 'channels', s.channels, 'needed', autopost.approvals_needed(p_workspace_id), 'approvals', (
			select coalesce(jsonb_agg(jsonb_build_object('by', a.approver, 'decision', a.decision, 'at', a.decided_at,
				'source', a.source, 'digest', a.digest, 'void', a.voided_at is not null) order by a.decided_at), '[]')
			from autopost.approvals a
			where a.workspace_id = p_workspace_id and a.subject = 'submission:' || p_submission_id))
	into v_answer
	from autopost.list_submissions_rows v
	join autopost.submissions s on s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	where v.workspace_id = p_workspace_id and v.submission_id = p_submission_id;
	return v_answer;
end
$$;
