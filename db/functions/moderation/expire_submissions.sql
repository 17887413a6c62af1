create or replace function autopost.expire_submissions(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends submissions that waited too long for a decision, up to 500 per call.
-- Returns: {"expired", "more"}.
-- Locks:   submissions (skip locked).
-- Writes:  submissions, events (submission_expired).
declare
	v_submission autopost.submissions;
	v_count int := 0;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	for v_submission in
		select s.* from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status = 'pending' and s.expires_at <= autopost.now_ts()
		order by s.expires_at
		limit 500
		for no key update of s skip locked
	loop
		v_now := autopost.now_ts();
		update autopost.submissions s
		set status = 'expired', updated_at = v_now
		where s.workspace_id = p_workspace_id and s.submission_id = v_submission.submission_id;
		perform autopost.note_submission(v_submission, 'submission_expired', '{}');
		v_count := v_count + 1;
	end loop;
	return jsonb_build_object('expired', v_count, 'more', v_count = 500);
end
$$;
