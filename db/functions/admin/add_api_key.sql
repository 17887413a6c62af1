create or replace function autopost.add_api_key(p_workspace_id text, p_name text, p_role text, p_secret_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Adds a key of the API by the SHA-256 (hexadecimal) of its secret; the secret itself never comes here. Returns {"id"}.
-- Writes: api_keys, secret_lookup.
declare
	v_id uuid := autopost.new_id();
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('name', p_name <> '');
	if coalesce(p_role not in ('viewer', 'editor', 'approver', 'operator', 'owner'), true) then
		perform autopost.refuse('role', format('%s is unknown', coalesce(p_role, 'null')), 'use viewer, editor, approver, operator or owner');
	elsif coalesce(p_secret_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.refuse('secret_hash', 'is no SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
	insert into autopost.api_keys (workspace_id, key_id, name, role, secret_hash, created_at)
	values (p_workspace_id, v_id, p_name, p_role, p_secret_hash, autopost.now_ts());
	return jsonb_build_object('id', v_id);
end
$$;
