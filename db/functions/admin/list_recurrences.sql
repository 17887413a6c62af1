create or replace function autopost.list_recurrences(p_workspace_id text, p_filter jsonb, p_limit int)
	returns table (recurrence_id uuid, endpoint_id text, rule text, zone text, starts_at text, payloads jsonb,
		enabled boolean, next_at timestamptz, posts int, last_error jsonb, author text, created_at timestamptz,
		updated_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists posts that repeat, newest first. p_filter: recurrence_id, before_id (older than this id:
--          the next page). next_at is the next expected instant, posts the number of posts made so far.
-- Raises:  AP001 for an unknown key, a malformed id, or a limit outside 1 to 10000.
-- Reads:   recurrences, occurrences.
declare
	v_id uuid := autopost.uuid_in(p_filter, 'recurrence_id');
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{recurrence_id,before_id}', p_limit);
	return query
	select r.recurrence_id, r.endpoint_id, r.rule, r.zone, to_char(r.starts_at, 'YYYY-MM-DD"T"HH24:MI'), r.payloads,
		r.enabled, (select min(o.at) from autopost.occurrences o
			where o.workspace_id = p_workspace_id and o.recurrence_id = r.recurrence_id and o.status = 'expected'),
		r.taken, r.last_error, r.author, r.created_at, r.updated_at
	from autopost.recurrences r
	where r.workspace_id = p_workspace_id
	and (v_id is null or r.recurrence_id = v_id)
	and (v_before_id is null or r.recurrence_id < v_before_id)
	order by r.recurrence_id desc
	limit p_limit;
end
$$;
