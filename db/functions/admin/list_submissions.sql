create or replace function autopost.list_submissions(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_submissions
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists submissions, newest first. All keys of p_filter are optional: status, decided
--          (true: only those that a person decided), since (inclusive) and until (exclusive) of the
--          receipt, before_id (older than this id: the next page). The plan is made per call, so that a missing key does not disable an index.
-- Raises:  AP001 for an unknown key or status, a malformed id or instant, or a limit outside 1 to
--          10000.
-- Reads:   list_submissions (view).
declare
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{status,decided,since,until,before_id}', p_limit);
	perform autopost.check_status(p_filter, '{new,fetching,pending,skipped,enqueued,rejected,expired,failed}');
	return query
	select v.* from autopost.list_submissions_rows v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'status' or v.status = p_filter ->> 'status')
	and (p_filter ->> 'decided' is distinct from 'true' or v.decision is not null)
	and (v_before_id is null or v.submission_id < v_before_id)
	and (v_from is null or v.submission_id >= v_from)
	and (v_until is null or v.submission_id < v_until)
	order by v.submission_id desc
	limit p_limit;
end
$$;
