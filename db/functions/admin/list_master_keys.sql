create or replace function autopost.list_master_keys() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: counts sealed secrets and data keys per master key: {"key id": n}. Works across
--          workspaces. Only the engine may call it.
-- Reads:   sealed_secrets, data_keys.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	return (
		select coalesce(jsonb_object_agg(t.key_id, t.secrets), '{}')
		from (
			select k.key_id, count(*) as secrets
			from (
				select s.workspace_id, s.key_id from autopost.sealed_secrets s
				union all
				select d.workspace_id, d.key_id from autopost.data_keys d) k
			where (v_mine is null or k.workspace_id = any (v_mine))
			group by k.key_id) t);
end
$$;
