create or replace function autopost.speaker() returns text
language sql stable
as $$
-- The role on whose behalf a security definer function runs.
select case when current_setting('role') = 'none' then session_user::text else current_setting('role') end
$$;

create or replace function autopost.speaks_for_owner() returns boolean
language sql stable
as $$
-- Whether the caller may act as the owner: only then does a passed p_now decide anything.
select pg_catalog.pg_has_role(autopost.speaker(), 'autopost_owner', 'member')
$$;

create or replace function autopost.deciding_now(p_now timestamptz) returns timestamptz
language sql volatile
as $$
-- The instant that decides: the engine's clock, or what the owner (a test, a plan) passed.
select case when p_now is not null and autopost.speaks_for_owner() then p_now else autopost.now_ts() end
$$;

create or replace function autopost.enter_workspace(p_workspace_id text) returns text
language plpgsql
as $$
-- First act of every public function with a workspace: may the caller speak for it, does it exist; from then on, until the
-- transaction ends or another workspace is entered, only its rows are visible to the functions.
-- Returns: the workspace's status. Raises AP001 no workspace given, AP002 not the caller's, AP003 unknown, AP005 isolation.
-- Reads: role_workspaces, workspaces.
declare
	v_status text;
begin
	perform autopost.require('workspace_id', p_workspace_id is not null);
	if current_setting('transaction_isolation') <> 'read committed' then
		raise exception 'transaction isolation is %', current_setting('transaction_isolation')
			using errcode = 'AP005', hint = 'call autopost functions under READ COMMITTED';
	end if;
	perform set_config('autopost.workspace_id', '', true);
	if not autopost.may_speak_for(p_workspace_id) then
		raise exception 'role % may not speak for workspace %', autopost.speaker(), p_workspace_id
			using errcode = 'AP002', hint = 'insert (role_name, workspace_id) into autopost.role_workspaces as the owner';
	end if;
	perform set_config('autopost.workspace_id', p_workspace_id, true);
	select w.status into v_status from autopost.workspaces w where w.workspace_id = p_workspace_id;
	if v_status is null then
		raise exception 'there is no workspace %', p_workspace_id
			using errcode = 'AP003', hint = 'insert it into autopost.workspaces, or correct p_workspace_id';
	end if;
	return v_status;
end
$$;

create or replace function autopost.enter_new_workspace(p_workspace_id text) returns void
language plpgsql
as $$
-- enter_workspace, for one that may not be there yet. Raises as that does, AP003 never, and AP001 for what cannot be a name.
begin
	perform autopost.enter_workspace(p_workspace_id);
exception when sqlstate 'AP003' then
	if p_workspace_id in ('', '*') then
		perform autopost.refuse('workspace_id', 'is no name', 'use letters, digits and dashes');
	end if;
	perform autopost.check_new_id('workspace_id', p_workspace_id);
	perform set_config('autopost.workspace_id', p_workspace_id, true);
end
$$;

create or replace function autopost.enter_all_workspaces() returns void
language plpgsql
as $$
-- First act of the few functions that look across workspaces; each of them then asks may_speak_for row by row.
begin
	perform set_config('autopost.workspace_id', '', true);
end
$$;

create or replace function autopost.may_speak_for(p_workspace_id text) returns boolean
language plpgsql stable
as $$
-- Whether the caller may act for the workspace. Needs all of role_workspaces in sight: call it before one is entered.
begin
	return (
		select exists (
			select 1 from autopost.role_workspaces rw
			join pg_catalog.pg_roles r on r.rolname = rw.role_name
			where rw.workspace_id in (p_workspace_id, '*')
			and pg_catalog.pg_has_role(autopost.speaker(), r.oid, 'member')));
end
$$;
