create or replace function autopost.due_stages(p_within_ms int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- What a daemon asks every few seconds instead of asking for each kind of work: which kinds have something to do now or within p_within_ms, until it asks again.
-- Returns, of deliveries, acts, submissions, fanout, sources, results and leases: payloads of NOTIFY autopost_wake, and three more. None is the normal answer.
-- It is a hint: a kind that is named may find nothing, and what becomes due later is named later. Looks across workspaces. The engine alone may.
-- Reads: what armed_workspaces and the functions of lib/due_workspaces read.
declare
	v_now timestamptz;
	v_by timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('within_ms', p_within_ms >= 0);
	v_now := autopost.now_ts();
	v_by := v_now + p_within_ms * interval '1 millisecond';
	return query
	select s.stage from (values
		('deliveries', exists (select 1 from autopost.armed_workspaces() a where a.ready_at <= v_by)),
		('acts', exists (select 1 from autopost.act_workspaces(v_by, 1))),
		('submissions', exists (select 1 from autopost.submission_workspaces(v_by, 1))),
		('fanout', exists (select 1 from autopost.fanout_workspaces(v_by, 1))),
		('sources', exists (select 1 from autopost.source_polls() p where p.due_at <= v_by)),
		('results', exists (select 1 from autopost.webhook_workspaces(v_by, 1))),
		('leases', exists (select 1 from autopost.lapsed_workspaces(v_now, 1)))) s (stage, due)
	where s.due;
end
$$;
