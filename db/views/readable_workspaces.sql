-- The workspaces that role_workspaces allows to the reader's role or to a role it is a member of.
create or replace view autopost.readable_workspaces as
select w.workspace_id
from autopost.workspaces w
where exists (
	select 1 from autopost.role_workspaces rw
	join pg_catalog.pg_roles r on r.rolname = rw.role_name
	where rw.workspace_id in (w.workspace_id, '*')
	and pg_catalog.pg_has_role(case current_setting('role') when 'none'
		then session_user else current_setting('role')::name end, r.oid, 'member'));
