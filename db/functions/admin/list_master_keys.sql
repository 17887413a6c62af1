create or replace function autopost.list_master_keys() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Under which master keys secrets are sealed, and how many: {"key id": n}. Looks across workspaces. The engine alone may.
-- Reads: sealed_secrets.
begin
	perform autopost.enter_all_workspaces();
	return (
		select coalesce(jsonb_object_agg(k.key_id, k.secrets), '{}')
		from (
			select s.key_id, count(*) as secrets from autopost.sealed_secrets s
			where autopost.may_speak_for(s.workspace_id)
			group by s.key_id) k);
end
$$;
