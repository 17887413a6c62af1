create or replace function autopost.functions_digest() returns text
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- The digest of the functions that are installed, which a binary compares with its own.
-- Reads: installed_functions.
begin
	return (select f.digest from autopost.installed_functions f);
end
$$;
