create or replace function autopost.begin_first_link(p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores the link of the first person by the SHA-256 of its token. It works for a week, while
--          there are no users.
-- Returns: {"applied": true, "expires_at"}; or {"applied": false, "reason": "users_exist"}.
-- Raises:  AP001 for a malformed hash.
-- Reads:   users.
-- Writes:  first_links.
declare
	v_until timestamptz := autopost.now_ts() + interval '7 days';
	v_now timestamptz;
begin
	perform autopost.check_token_hash(p_token_hash);
	if exists (select 1 from autopost.users u) then
		return '{"applied": false, "reason": "users_exist"}';
	end if;
	v_now := autopost.now_ts();
	delete from autopost.first_links l where l.expires_at <= v_now;
	insert into autopost.first_links (token_hash, expires_at) values (p_token_hash, v_until)
	on conflict (token_hash) do update set expires_at = excluded.expires_at;
	return jsonb_build_object('applied', true, 'expires_at', v_until);
end
$$;
