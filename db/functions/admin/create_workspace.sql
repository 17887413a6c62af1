create or replace function autopost.create_workspace(p_workspace_id text, p_name text, p_user_id uuid, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds a workspace, and the owner of the installation who adds it as its owner.
-- Returns: {"applied": true, "dry_run", "workspace_id"}; or {"applied": false, "dry_run", "reason":
--          "not_installation_owner" | "workspace_exists"}.
-- Raises:  AP001 for a wrong argument; AP002 if the role may not act for the workspace.
-- Locks:   turns (people), audit_heads.
-- Reads:   users.
-- Writes:  workspaces, memberships, admin_audit_log.
declare
	v_act jsonb;
	v_refused text;
begin
	perform autopost.enter_new_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('user_id', p_user_id is not null);
	if length(p_name) > 100 or p_name ~ '[[:cntrl:]]' then
		perform autopost.raise_argument('name', 'must have at most 100 characters in one line', 'shorten it');
	end if;
	perform autopost.take_turn('people') where not p_dry_run;
	v_refused := case
		when not exists (select 1 from autopost.users u where u.user_id = p_user_id and u.enabled
			and u.installation_owner) then 'not_installation_owner'
		when exists (select 1 from autopost.workspaces w where w.workspace_id = p_workspace_id)
			then 'workspace_exists' end;
	if v_refused is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_refused);
	end if;
	if not p_dry_run then
		insert into autopost.workspaces (workspace_id, name, created_at, updated_at)
		values (p_workspace_id, coalesce(btrim(p_name), ''), autopost.now_ts(), autopost.now_ts());
		insert into autopost.memberships (workspace_id, user_id, role, created_at)
		values (p_workspace_id, p_user_id, 'owner', autopost.now_ts());
		perform autopost.audit(p_workspace_id, 'create_workspace', 'workspace:' || p_workspace_id, v_act, '{}',
			jsonb_build_object('name', coalesce(btrim(p_name), ''), 'owner', p_user_id));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'workspace_id', p_workspace_id);
end
$$;
