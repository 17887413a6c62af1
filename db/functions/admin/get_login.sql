create or replace function autopost.get_login(p_email text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the password hash of the enabled person with this e-mail address.
-- Returns: {"user_id", "password_hash"}; null without such a person or without a password.
-- Reads:   users.
begin
	return (
		select jsonb_build_object('user_id', u.user_id, 'password_hash', u.password_hash)
		from autopost.users u
		where u.email = lower(btrim(p_email)) and u.enabled and u.password_hash is not null);
end
$$;
