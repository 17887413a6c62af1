create or replace function autopost.admit_person(p_email text, p_name text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the person with an e-mail address that an identity provider has verified. Open
--          invitations for the address are accepted; an invited person who does not exist yet is added
--          without a password. Works across workspaces. Only the engine may call it.
-- Returns: {"applied": true, "user_id"}; or {"applied": false, "reason": "unknown_person" | "disabled"}.
-- Raises:  AP001 for a text that is not an address.
-- Locks:   turns (people), audit_heads.
-- Writes:  users, memberships, invitations, admin_audit_log.
declare
	v_email text := autopost.email_of(p_email);
	v_user autopost.users;
	v_row autopost.invitations;
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	perform autopost.take_turn('people');
	select u.* into v_user from autopost.users u where u.email = v_email;
	if v_user.enabled is false then
		return '{"applied": false, "reason": "disabled"}';
	end if;
	for v_row in
		select i.* from autopost.invitations i
		where i.email = v_email and i.expires_at > autopost.now_ts()
			and (v_mine is null or i.workspace_id = any (v_mine))
		order by i.workspace_id
	loop
		if v_user.user_id is null then
			v_user := autopost.add_user(v_email, coalesce(nullif(left(btrim(regexp_replace(p_name, '[[:cntrl:]]', '',
				'g')), 100), ''), split_part(v_email, '@', 1)), null, false);
		end if;
		insert into autopost.memberships (workspace_id, user_id, role, created_at)
		values (v_row.workspace_id, v_user.user_id, v_row.role, autopost.now_ts())
		on conflict (workspace_id, user_id) do update set role = excluded.role;
		delete from autopost.invitations i
		where i.workspace_id = v_row.workspace_id and i.invitation_id = v_row.invitation_id;
		perform autopost.audit(v_row.workspace_id, 'accept_invitation', 'user:' || v_user.user_id,
			autopost.act_of_user(v_user.user_id, 'invited by ' || v_row.invited_by || ', signed in by the identity provider'),
			'{}', autopost.user_shown(v_user) || jsonb_build_object('role', v_row.role));
	end loop;
	if v_user.user_id is null then
		return '{"applied": false, "reason": "unknown_person"}';
	end if;
	return jsonb_build_object('applied', true, 'user_id', v_user.user_id);
end
$$;
