create or replace function autopost.list_drafts(p_workspace_id text, p_filter jsonb, p_limit int)
	returns table (draft_id uuid, endpoint_id text, excerpt text, media int, version int, created_at timestamptz,
		updated_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the open drafts of a person, newest first. p_filter: author (required), and
--          before_id (older than this id: the next page).
-- Raises:  AP001 for an unknown key, a missing author, a malformed id, or a limit outside 1 to 10000.
-- Reads:   drafts.
declare
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{author,before_id}', p_limit);
	perform autopost.require_argument('filter', p_filter ->> 'author' <> '');
	return query
	select d.draft_id, d.endpoint_id, left(d.payload ->> 'text', 200), case
		when jsonb_typeof(d.payload -> 'media') = 'array' then jsonb_array_length(d.payload -> 'media') else 0 end,
		d.version, d.created_at, d.updated_at
	from autopost.drafts d
	where d.workspace_id = p_workspace_id and d.author = p_filter ->> 'author' and d.submitted_at is null
	and (v_before_id is null or d.draft_id < v_before_id)
	order by d.draft_id desc
	limit p_limit;
end
$$;
