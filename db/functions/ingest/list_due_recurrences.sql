create or replace function autopost.list_due_recurrences(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists recurrences whose rules must be expanded, longest due first. The caller expands each from
--          "after" (exclusive) to "until", at most "most" local times, and calls put_occurrences.
-- Returns: [{"recurrence_id", "revision", "rule", "starts_at", "after", "until", "most"}]; times are local.
-- Raises:  AP001 if the limit is not positive.
-- Reads:   recurrences, occurrences.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('limit', p_limit > 0);
	return (
		select coalesce(jsonb_agg(jsonb_build_object('recurrence_id', d.recurrence_id, 'revision', d.revision, 'rule',
			d.rule, 'starts_at', d.starts_at, 'after', d.expanded_to, 'until', d.until, 'most', 400)
			order by d.expand_at), '[]')
		from (
			select r.*, (autopost.now_ts() + interval '60 days') at time zone r.zone as until
			from autopost.recurrences r
			where r.workspace_id = p_workspace_id and r.enabled and r.expand_at <= autopost.now_ts()
			order by r.expand_at
			limit p_limit) d);
end
$$;
