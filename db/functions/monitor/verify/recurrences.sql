create or replace function autopost.verify_i48(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I48. Finds occurrences that share a post, and those without one although
--          they were enqueued.
-- Reads:   occurrences, submissions, messages.
begin
	return query
	with enqueued as materialized (
		select o.occurrence_id, o.submission_id, coalesce(o.message_id, s.message_id) as message_id, o.updated_at
		from autopost.occurrences o
		left join autopost.submissions s on s.workspace_id = p_workspace_id and s.submission_id = o.submission_id
		where o.workspace_id = p_workspace_id and o.status = 'enqueued'
	)
	select jsonb_build_object('what', 'two occurrences have one post', 'message_id', e.message_id, 'occurrence_id',
		min(e.occurrence_id::text))
	from enqueued e
	where e.message_id is not null
	group by e.message_id
	having count(*) > 1
	union all
	select jsonb_build_object('what', 'an occurrence has no post', 'occurrence_id', e.occurrence_id)
	from enqueued e
	where not exists (select 1 from autopost.messages m
		where m.workspace_id = p_workspace_id and m.message_id = e.message_id)
	and not exists (select 1 from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.submission_id = e.submission_id)
	and e.updated_at > autopost.kept_from('delivery_retention_days');
end
$$;
