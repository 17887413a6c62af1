create or replace function autopost.list_occurrences(p_workspace_id text, p_filter jsonb, p_limit int)
	returns table (occurrence_id uuid, recurrence_id uuid, at timestamptz, status text, message_id uuid,
		submission_id uuid, moved boolean, reason text, error jsonb)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists occurrences of a recurrence by their instants. p_filter: recurrence_id (required), since
--          (inclusive), until (exclusive), and after: {"at", "occurrence_id"} of the last row of the page
--          before.
-- Raises:  AP001 for an unknown key, a missing recurrence, a malformed value, or a limit outside 1 to 10000.
-- Reads:   occurrences, submissions.
declare
	v_id uuid := autopost.uuid_in(p_filter, 'recurrence_id');
	v_from timestamptz := coalesce(autopost.instant_in(p_filter, 'since'), '-infinity');
	v_until timestamptz := coalesce(autopost.instant_in(p_filter, 'until'), 'infinity');
	v_after jsonb := coalesce(p_filter -> 'after', '{}');
	v_after_at timestamptz := coalesce(autopost.instant_in(v_after, 'at'), '-infinity');
	v_after_id uuid := coalesce(autopost.uuid_in(v_after, 'occurrence_id'), '00000000-0000-0000-0000-000000000000');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{recurrence_id,since,until,after}', p_limit);
	perform autopost.require_argument('filter', v_id is not null);
	return query
	select o.occurrence_id, o.recurrence_id, o.at, o.status, coalesce(o.message_id, s.message_id), o.submission_id,
		o.moved, o.reason, o.error
	from autopost.occurrences o
	left join autopost.submissions s on s.workspace_id = p_workspace_id and s.submission_id = o.submission_id
	where o.workspace_id = p_workspace_id and o.recurrence_id = v_id
	and o.at >= v_from and o.at < v_until and (o.at, o.occurrence_id) > (v_after_at, v_after_id)
	order by o.at, o.occurrence_id
	limit p_limit;
end
$$;
