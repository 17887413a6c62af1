-- Ingest runs with their counts.
create or replace view autopost.list_runs_rows as
select r.workspace_id, r.run_id, r.kind, r.endpoint_id, r.source_id, r.started_at, r.finished_at, r.stats_json as stats
from autopost.ingest_runs r;

create or replace view autopost.list_runs with (security_barrier = true) as
select v.workspace_id, v.run_id, v.kind, v.endpoint_id, v.source_id, v.started_at, v.finished_at, v.stats
from autopost.list_runs_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
