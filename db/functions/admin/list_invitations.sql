create or replace function autopost.list_invitations(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof jsonb
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the open invitations of a workspace, newest first. p_filter may have before_id (older
--          than this id: the next page).
-- Returns: rows {"invitation_id", "email", "role", "invited_by", "created_at", "expires_at"}.
-- Raises:  AP001 for an unknown key, a malformed id, or a limit outside 1 to 10000.
-- Reads:   invitations.
declare
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{before_id}', p_limit);
	return query
	select jsonb_build_object('invitation_id', i.invitation_id, 'email', i.email, 'role', i.role, 'invited_by',
		i.invited_by, 'created_at', i.created_at, 'expires_at', i.expires_at)
	from autopost.invitations i
	where i.workspace_id = p_workspace_id and i.expires_at > autopost.now_ts()
	and (v_before_id is null or i.invitation_id < v_before_id)
	order by i.invitation_id desc
	limit p_limit;
end
$$;
