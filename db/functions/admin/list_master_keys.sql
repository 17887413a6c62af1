create or replace function autopost.list_master_keys() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: counts sealed secrets per master key: {"key id": n}. Works across workspaces. Only the
--          engine may call it.
-- Reads:   sealed_secrets.
begin
	perform autopost.enter_all_workspaces();
	return (
		select coalesce(jsonb_object_agg(k.key_id, k.secrets), '{}')
		from (
			select s.key_id, count(*) as secrets from autopost.sealed_secrets s
			where autopost.may_access(s.workspace_id)
			group by s.key_id) k);
end
$$;
