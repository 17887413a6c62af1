create or replace function autopost.list_due_sources_of(p_workspace_id text, p_kinds text[], p_limit int)
	returns setof autopost.due_source
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: list_due_sources for a caller that can read these kinds of sources only. Sources of other
--          kinds stay due for others.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors (skip locked).
-- Writes:  pull_cursors.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('kinds', cardinality(p_kinds) > 0 and array_position(p_kinds, null) is null),
		autopost.require_argument('limit', p_limit > 0);
	return query select s.* from autopost.lease_sources(p_workspace_id, null, p_kinds, p_limit) s;
end
$$;
