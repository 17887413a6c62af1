create or replace function autopost.preview_occurrences(p_workspace_id text, p_zone text, p_local timestamp[])
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the instants of local times in a zone, in order and without repeats: a skipped time gives the
--          end of the gap, a repeated time its first instant.
-- Returns: an array of instants in UTC.
-- Raises:  AP001 for an unknown zone or without times.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('local', p_local is not null);
	if not coalesce(autopost.is_zone(p_zone), false) then
		perform autopost.raise_argument('zone', format('unknown time zone %L', p_zone), 'use a name such as Europe/Moscow');
	end if;
	return (
		select coalesce(jsonb_agg(autopost.utc(x.at) order by x.at), '[]')
		from (select distinct autopost.zoned_instant(p_zone, l.l) as at from unnest(p_local) l (l)) x);
end
$$;
