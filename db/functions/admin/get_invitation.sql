create or replace function autopost.get_invitation(p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the invitation, or the first link, with this SHA-256 of a token. Works across
--          workspaces.
-- Returns: {"kind": "first"}; {"kind": "invitation", "workspace_id", "workspace", "email", "role",
--          "user_id" and "password_hash" of a person who exists}; null without one.
-- Reads:   first_links, users, invitations, workspaces.
declare
	v_answer jsonb;
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	if exists (select 1 from autopost.first_links l
		where l.token_hash = p_token_hash and l.expires_at > autopost.now_ts())
		and not exists (select 1 from autopost.users u) then
		return '{"kind": "first"}';
	end if;
	select jsonb_build_object('kind', 'invitation', 'workspace_id', i.workspace_id, 'workspace',
		coalesce(nullif(w.name, ''), w.workspace_id), 'email', i.email, 'role', i.role, 'user_id', u.user_id,
		'password_hash', u.password_hash) into v_answer
	from autopost.invitations i
	join autopost.workspaces w on w.workspace_id = i.workspace_id
	left join autopost.users u on u.email = i.email
	where i.token_hash = p_token_hash and i.expires_at > autopost.now_ts()
		and (v_mine is null or i.workspace_id = any (v_mine))
	limit 1;
	return v_answer;
end
$$;
