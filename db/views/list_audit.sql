-- Operator actions.
create or replace view autopost.list_audit_rows as
select a.workspace_id, a.id, a.seq, a.ts, a.operator, a.action, a.reason, a.subject, a.before, a.after, a.hash, a.login
from autopost.admin_audit_log a;

create or replace view autopost.list_audit with (security_barrier = true) as
select v.workspace_id, v.id, v.seq, v.ts, v.operator, v.action, v.reason, v.subject, v.before, v.after, v.hash, v.login
from autopost.list_audit_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
