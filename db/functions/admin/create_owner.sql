create or replace function autopost.create_owner(p_workspace_id text, p_token_hash text, p_fields jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds the first person as owner of the installation and of a workspace, which may exist.
--          p_fields: {"email", "name", "password_hash"}.
-- Returns: {"applied": true, "user_id", "created": true for a new workspace}; or {"applied": false,
--          "reason": "users_exist" | "unknown_link"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   turns (people), audit_heads.
-- Writes:  workspaces, users, memberships, first_links, admin_audit_log.
declare
	v_email text;
	v_name text;
	v_user autopost.users;
	v_new boolean;
begin
	perform autopost.enter_new_workspace(p_workspace_id);
	perform autopost.check_token_hash(p_token_hash);
	v_email := autopost.email_of(p_fields ->> 'email');
	v_name := autopost.person_name_of(p_fields ->> 'name');
	perform autopost.check_password_hash(p_fields ->> 'password_hash');
	perform autopost.take_turn('people');
	if exists (select 1 from autopost.users u) then
		return '{"applied": false, "reason": "users_exist"}';
	elsif not exists (select 1 from autopost.first_links l
		where l.token_hash = p_token_hash and l.expires_at > autopost.now_ts()) then
		return '{"applied": false, "reason": "unknown_link"}';
	end if;
	insert into autopost.workspaces (workspace_id, created_at, updated_at)
	values (p_workspace_id, autopost.now_ts(), autopost.now_ts())
	on conflict (workspace_id) do nothing;
	v_new := found;
	v_user := autopost.add_user(v_email, v_name, p_fields ->> 'password_hash', true);
	insert into autopost.memberships (workspace_id, user_id, role, created_at)
	values (p_workspace_id, v_user.user_id, 'owner', autopost.now_ts());
	delete from autopost.first_links l where l.expires_at is not null;
	perform autopost.audit(p_workspace_id, 'create_owner', 'user:' || v_user.user_id,
		autopost.act_of_user(v_user.user_id, 'the first link'), '{}',
		autopost.user_shown(v_user) || jsonb_build_object('role', 'owner'));
	return jsonb_build_object('applied', true, 'user_id', v_user.user_id, 'created', v_new);
end
$$;
