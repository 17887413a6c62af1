-- Alerts, open and ended.
create or replace view autopost.list_alerts_rows as
select a.workspace_id, a.alert_id, a.kind, a.subject, a.raised_at, a.ended_at, a.error, a.meta,
	a.severity, a.what, a.remedy, a.amount, a.acknowledged_at, a.acknowledged_by, a.last_notified_at
from autopost.alerts a;

create or replace view autopost.list_alerts with (security_barrier = true) as
select v.workspace_id, v.alert_id, v.kind, v.subject, v.raised_at, v.ended_at, v.error, v.meta, v.severity, v.what,
	v.remedy, v.amount, v.acknowledged_at, v.acknowledged_by, v.last_notified_at
from autopost.list_alerts_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
