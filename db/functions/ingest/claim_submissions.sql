create or replace function autopost.claim_submissions(p_workspace_id text, p_run_id text, p_limit int)
returns setof autopost.claimed_submission
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases submissions with media to fetch, including those with an expired lease.
-- Locks:   submissions (skip locked).
-- Writes:  submissions.
declare
	v_now timestamptz;
	v_ids uuid[];
	v_salt text := gen_random_uuid()::text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id <> ''), autopost.require_argument('limit', p_limit > 0);
	v_now := autopost.now_ts();
	select array_agg(l.submission_id) into v_ids
	from (
		select s.submission_id from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status = 'fetching' and s.next_attempt_at <= v_now
		and coalesce(s.lease_until, v_now) <= v_now
		order by s.next_attempt_at
		limit p_limit
		for no key update of s skip locked) l;
	update autopost.submissions s
	set attempt = s.attempt + 1, claimed_by = p_run_id, claim_token = md5(v_salt || s.submission_id),
		lease_until = v_now + autopost.setting_interval('submission_lease_seconds'), updated_at = v_now
	where s.workspace_id = p_workspace_id and s.submission_id = any (v_ids);
	return query
	select s.workspace_id, s.submission_id, s.endpoint_id, s.kind, s.attempt, s.claim_token, s.lease_until,
		s.raw_payload, s.trace_id
	from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = any (v_ids)
	order by s.next_attempt_at;
end
$$;
