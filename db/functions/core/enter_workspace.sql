create or replace function autopost.caller_role() returns text
language sql stable
as $$
-- Purpose: the role that called a security definer function.
select case when current_setting('role') = 'none' then session_user::text else current_setting('role') end
$$;

create or replace function autopost.is_owner_login() returns boolean
language sql stable
as $$
-- Purpose: true if the caller may act as the owner. Only then p_now has an effect.
select pg_catalog.pg_has_role(autopost.caller_role(), 'autopost_owner', 'member')
$$;

create or replace function autopost.is_engine_login() returns boolean
language sql stable
as $$
-- Purpose: true if the caller is the engine, whose statements about contents are believed.
select pg_catalog.pg_has_role(autopost.caller_role(), 'autopost_engine', 'member')
$$;

create or replace function autopost.deciding_now(p_now timestamptz) returns timestamptz
language sql volatile
as $$
-- Purpose: the deciding instant: now_ts(), or p_now of the owner (a test or a plan).
select case when p_now is not null and autopost.is_owner_login() then p_now else autopost.now_ts() end
$$;

create or replace function autopost.enter_workspace(p_workspace_id text) returns text
language plpgsql
as $$
-- Purpose: checks that the caller may act for the workspace and that it exists. It is the first act
--          of every public function with a workspace. From then on only rows of this workspace are
--          visible in the transaction.
-- Returns: the status of the workspace.
-- Raises:  AP001 without a workspace; AP002 if the role may not act for it; AP003 if it does not
--          exist; AP005 for an isolation level other than READ COMMITTED.
-- Reads:   role_workspaces, workspaces.
declare
	v_status text;
begin
	perform autopost.require_argument('workspace_id', p_workspace_id is not null);
	if current_setting('transaction_isolation') <> 'read committed' then
		raise exception 'transaction isolation must be READ COMMITTED, got %', current_setting('transaction_isolation')
			using errcode = 'AP005', hint = 'call the function in a READ COMMITTED transaction';
	end if;
	perform set_config('autopost.workspace_id', '', true);
	if not autopost.may_access(p_workspace_id) then
		raise exception 'role % may not act for workspace %', autopost.caller_role(), p_workspace_id
			using errcode = 'AP002',
				hint = 'insert (role_name, workspace_id) into autopost.role_workspaces as the owner';
	end if;
	perform set_config('autopost.workspace_id', p_workspace_id, true);
	select w.status into v_status from autopost.workspaces w where w.workspace_id = p_workspace_id;
	if v_status is null then
		raise exception 'unknown workspace %', p_workspace_id
			using errcode = 'AP003', hint = 'insert it into autopost.workspaces, or correct p_workspace_id';
	end if;
	return v_status;
end
$$;

create or replace function autopost.enter_new_workspace(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: enter_workspace for a workspace that may not exist yet.
-- Raises:  as enter_workspace without AP003; AP001 for an invalid name.
begin
	perform autopost.enter_workspace(p_workspace_id);
exception when sqlstate 'AP003' then
	if p_workspace_id in ('', '*') then
		perform autopost.raise_argument('workspace_id', 'must be a name', 'use letters, digits and dashes');
	end if;
	perform autopost.check_new_id('workspace_id', p_workspace_id);
	perform set_config('autopost.workspace_id', p_workspace_id, true);
end
$$;

create or replace function autopost.enter_all_workspaces() returns void
language plpgsql
as $$
-- Purpose: makes the rows of all workspaces visible. The caller must check may_access for each
--          row.
begin
	perform set_config('autopost.workspace_id', '', true);
end
$$;

create or replace function autopost.may_access(p_workspace_id text) returns boolean
language plpgsql stable
as $$
-- Purpose: true if the caller may act for the workspace. Call it before a workspace is entered, and
--          never within a statement over tables: there a cluster asks as the owner.
-- Reads:   role_workspaces.
declare
	v_caller text := autopost.caller_role();
begin
	-- A role that was dropped has no number, and pg_has_role is null for it.
	return exists (
		select 1 from autopost.role_workspaces rw
		where rw.workspace_id in (p_workspace_id, '*')
		and pg_catalog.pg_has_role(v_caller, pg_catalog.to_regrole(quote_ident(rw.role_name)), 'member'));
end
$$;

create or replace function autopost.own_workspaces() returns text[]
language plpgsql stable
as $$
-- Purpose: the workspaces that the caller may act for; null for all. Read it before a statement over
--          the tables of all workspaces, and compare with it there.
--          Before it, all workspaces must be visible.
-- Reads:   role_workspaces.
declare
	v_caller text := autopost.caller_role();
	v_mine text[] := array(
		select rw.workspace_id from autopost.role_workspaces rw
		where pg_catalog.pg_has_role(v_caller, pg_catalog.to_regrole(quote_ident(rw.role_name)), 'member'));
begin
	return case when '*' = any (v_mine) then null else v_mine end;
end
$$;
