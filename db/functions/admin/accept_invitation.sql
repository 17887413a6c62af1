create or replace function autopost.accept_invitation(p_token_hash text, p_user_id uuid, p_fields jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes the invited person a member. A new person (p_user_id null) gives {"name",
--          "password_hash"}. A person who exists has proved the own password or session: p_user_id.
--          Works across workspaces.
-- Returns: {"applied": true, "user_id", "workspace_id"}; or {"applied": false, "reason":
--          "unknown_link" | "other_user"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   turns (people), audit_heads.
-- Writes:  users, memberships, invitations, admin_audit_log.
declare
	v_row autopost.invitations;
	v_user autopost.users;
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	perform autopost.check_token_hash(p_token_hash);
	perform autopost.take_turn('people');
	select i.* into v_row from autopost.invitations i
	where i.token_hash = p_token_hash and i.expires_at > autopost.now_ts()
		and (v_mine is null or i.workspace_id = any (v_mine))
	limit 1;
	if v_row.invitation_id is null then
		return '{"applied": false, "reason": "unknown_link"}';
	end if;
	select u.* into v_user from autopost.users u where u.email = v_row.email;
	if v_user.user_id is distinct from p_user_id or v_user.enabled is false then
		return '{"applied": false, "reason": "other_user"}';
	elsif v_user.user_id is null then
		perform autopost.check_password_hash(p_fields ->> 'password_hash');
		v_user := autopost.add_user(v_row.email, autopost.person_name_of(p_fields ->> 'name'),
			p_fields ->> 'password_hash', false);
	end if;
	insert into autopost.memberships (workspace_id, user_id, role, created_at)
	values (v_row.workspace_id, v_user.user_id, v_row.role, autopost.now_ts())
	on conflict (workspace_id, user_id) do update set role = excluded.role;
	delete from autopost.invitations i
	where i.workspace_id = v_row.workspace_id and i.invitation_id = v_row.invitation_id;
	perform autopost.audit(v_row.workspace_id, 'accept_invitation', 'user:' || v_user.user_id,
		autopost.act_of_user(v_user.user_id, 'invited by ' || v_row.invited_by), '{}',
		autopost.user_shown(v_user) || jsonb_build_object('role', v_row.role));
	return jsonb_build_object('applied', true, 'user_id', v_user.user_id, 'workspace_id', v_row.workspace_id);
end
$$;
