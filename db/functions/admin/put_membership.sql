create or replace function autopost.put_membership(p_workspace_id text, p_user_id uuid, p_role text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: gives a person a role in a workspace; null ends the membership. The last owner stays.
-- Returns: {"applied": true, "dry_run", "before": {"role"}, "after": {"role"}}; or {"applied": false,
--          "dry_run", "reason": "unknown_user" | "unchanged" | "last_owner"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   turns (people), audit_heads.
-- Writes:  memberships, admin_audit_log.
declare
	v_act jsonb;
	v_old text;
	v_refused text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('user_id', p_user_id is not null);
	perform autopost.check_role(p_role) where p_role is not null;
	perform autopost.take_turn('people') where not p_dry_run;
	select m.role into v_old from autopost.memberships m
	where m.workspace_id = p_workspace_id and m.user_id = p_user_id;
	v_refused := case
		when not exists (select 1 from autopost.users u where u.user_id = p_user_id) then 'unknown_user'
		when v_old is not distinct from p_role then 'unchanged'
		when v_old = 'owner' and not exists (select 1 from autopost.memberships m
			where m.workspace_id = p_workspace_id and m.role = 'owner' and m.user_id <> p_user_id) then 'last_owner' end;
	if v_refused is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_refused);
	end if;
	if not p_dry_run then
		if p_role is null then
			delete from autopost.memberships m where m.workspace_id = p_workspace_id and m.user_id = p_user_id;
		else
			insert into autopost.memberships (workspace_id, user_id, role, created_at)
			values (p_workspace_id, p_user_id, p_role, autopost.now_ts())
			on conflict (workspace_id, user_id) do update set role = excluded.role;
		end if;
		perform autopost.audit(p_workspace_id, 'put_membership', 'user:' || p_user_id, v_act,
			jsonb_build_object('role', v_old), jsonb_build_object('role', p_role));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', jsonb_build_object('role', v_old),
		'after', jsonb_build_object('role', p_role));
end
$$;
