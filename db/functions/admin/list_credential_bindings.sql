create or replace function autopost.list_credential_bindings(p_workspace_id text, p_limit int) returns setof autopost.credential_bindings
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The credentials of a workspace by name, and where their secrets are kept. The engine alone may ask. Raises AP001 for a limit out of 1 to 10000.
-- Reads: credential_bindings.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select b.* from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id
	order by b.auth_ref
	limit p_limit;
end
$$;
