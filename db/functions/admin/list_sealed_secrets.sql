create or replace function autopost.list_sealed_secrets(p_workspace_id text, p_not_key_id text, p_limit int)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the sealed secrets of a workspace that are wrapped by another master key than
--          p_not_key_id. Only the engine may call it.
-- Returns: an array of sealed secrets as in get_credential.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   sealed_secrets.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('not_key_id', p_not_key_id <> '');
	perform autopost.check_read('{}', '{}', p_limit);
	return (
		select coalesce(jsonb_agg(autopost.shown_sealed(s.row) order by (s.row).auth_ref, (s.row).version), '[]')
		from (
			select row(x.*)::autopost.sealed_secrets as row from autopost.sealed_secrets x
			where x.workspace_id = p_workspace_id and x.key_id <> p_not_key_id
			order by x.auth_ref, x.version
			limit p_limit) s);
end
$$;
