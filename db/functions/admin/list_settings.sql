create or replace function autopost.list_settings() returns setof autopost.settings
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The values that functions decide by, for the whole installation, each with its meaning and its default.
-- Reads: settings.
begin
	return query
	select s.* from autopost.settings s
	order by s.key;
end
$$;
