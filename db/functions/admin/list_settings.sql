create or replace function autopost.list_settings() returns setof autopost.settings
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the settings of the installation, with meaning and default. The settings
--          upload_policy_PLATFORM are the upload policies of the platforms.
-- Reads:   settings, platforms.
begin
	return query
	select s.* from autopost.all_settings() s
	order by s.key;
end
$$;
