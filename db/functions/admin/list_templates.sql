create or replace function autopost.list_templates(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.templates
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the templates of a workspace by name and platform, newest version first. Keys of
--          p_filter: template_id, platform, after ({"template_id", "platform", "version"}: rows
--          after this one, the next page).
-- Raises:  AP001 for a wrong filter, and for a limit outside 1 to 10000.
-- Reads:   templates.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{template_id,platform,after}', p_limit);
	if p_filter ? 'after' and jsonb_typeof(p_filter #> '{after,version}') is distinct from 'number' then
		perform autopost.raise_argument('filter', 'after must name a version',
			'pass template_id, platform and version of the last row');
	end if;
	return query
	select l.* from autopost.templates l
	where l.workspace_id = p_workspace_id and l.template_id = coalesce(p_filter ->> 'template_id', l.template_id)
		and l.platform = coalesce(p_filter ->> 'platform', l.platform)
	and (not p_filter ? 'after' or (l.template_id, l.platform) > (p_filter #>> '{after,template_id}',
		p_filter #>> '{after,platform}')
		or (l.template_id, l.platform) = (p_filter #>> '{after,template_id}', p_filter #>> '{after,platform}')
			and l.version < (p_filter #>> '{after,version}')::int)
	order by l.template_id, l.platform, l.version desc
	limit p_limit;
end
$$;
