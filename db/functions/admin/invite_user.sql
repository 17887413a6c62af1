create or replace function autopost.invite_user(p_workspace_id text, p_fields jsonb, p_token_hash text, p_operator text,
	p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: invites a person by the SHA-256 of the token of a link. p_fields: {"email", "role"}. The link
--          works once, for a week. It replaces an earlier one for the same address.
-- Returns: {"applied": true, "id", "email", "expires_at"}; or {"applied": false, "reason":
--          "already_member"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   turns (people), audit_heads.
-- Writes:  invitations, admin_audit_log.
declare
	v_act jsonb;
	v_email text;
	v_row autopost.invitations;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('fields', jsonb_typeof(p_fields) = 'object');
	v_email := autopost.email_of(p_fields ->> 'email');
	perform autopost.check_role(p_fields ->> 'role');
	perform autopost.check_token_hash(p_token_hash);
	perform autopost.take_turn('people');
	if exists (select 1 from autopost.memberships m join autopost.users u on u.user_id = m.user_id
		where m.workspace_id = p_workspace_id and u.email = v_email) then
		return '{"applied": false, "reason": "already_member"}';
	end if;
	v_now := autopost.now_ts();
	delete from autopost.invitations i where i.workspace_id = p_workspace_id
		and (i.email = v_email or i.expires_at <= v_now);
	insert into autopost.invitations (workspace_id, invitation_id, email, role, token_hash, invited_by, created_at,
		expires_at)
	values (p_workspace_id, autopost.new_id(), v_email, p_fields ->> 'role', p_token_hash, p_operator,
		autopost.now_ts(), autopost.now_ts() + interval '7 days')
	returning * into v_row;
	perform autopost.audit(p_workspace_id, 'invite_user', 'invitation:' || v_row.invitation_id, v_act, '{}',
		jsonb_build_object('email', v_email, 'role', v_row.role, 'expires_at', v_row.expires_at));
	return jsonb_build_object('applied', true, 'id', v_row.invitation_id, 'email', v_email, 'expires_at',
		v_row.expires_at);
end
$$;
