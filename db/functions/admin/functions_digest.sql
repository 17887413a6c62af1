create or replace function autopost.functions_digest() returns text
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the digest of the installed functions. A binary compares it with its own.
-- Reads:   installed_functions.
begin
	return (select f.digest from autopost.installed_functions f);
end
$$;
