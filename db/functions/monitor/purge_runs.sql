create or replace function autopost.purge_runs(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 5,000 ingest runs, oldest first, older than run_retention_days and than
--          the events of their posts. A run stays while one of its submissions waits.
-- Returns: {"purged", "more"}.
-- Locks:   ingest_runs (skip locked).
-- Reads:   submissions.
-- Writes:  ingest_runs.
declare
	v_before timestamptz;
	v_ids uuid[];
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := least(autopost.kept_from('run_retention_days'), autopost.kept_from('event_retention_days'));
	select array_agg(x.run_id) into v_ids
	from (
		select r.run_id from autopost.ingest_runs r
		where r.workspace_id = p_workspace_id and r.started_at < v_before
			and coalesce(r.finished_at, r.started_at) < v_before
		and not exists (
			select 1 from autopost.submissions s
			where s.workspace_id = p_workspace_id and s.run_id = r.run_id
				and s.status in ('new', 'fetching', 'pending') offset 0)
		order by r.started_at
		limit 5000
		for update of r skip locked) x;
	delete from autopost.ingest_runs r
	where r.workspace_id = p_workspace_id and r.run_id = any (v_ids);
	return jsonb_build_object('purged', coalesce(cardinality(v_ids), 0), 'more',
		coalesce(cardinality(v_ids), 0) = 5000);
end
$$;
