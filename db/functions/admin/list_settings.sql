create or replace function autopost.list_settings() returns setof autopost.settings
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the settings of the installation, with meaning and default.
-- Reads:   settings.
begin
	return query
	select s.* from autopost.settings s
	order by s.key;
end
$$;
