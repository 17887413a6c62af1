create or replace function autopost.due_stages(p_within_ms int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the kinds of work that are due now or within p_within_ms. A daemon polls it every few
--          seconds instead of each kind. Works across workspaces. Only the engine may call it.
-- Returns: some of deliveries, acts, submissions, fanout, recurrences, sources, files, results, moderation, bot and leases
--          (payloads of NOTIFY autopost_wake and three more); usually none. It is a hint: a listed kind may have
--          nothing to do; later work is listed later.
-- Reads:   as armed_workspaces and the functions of queue/due_workspaces.
declare
	v_now timestamptz;
	v_by timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('within_ms', p_within_ms >= 0);
	v_now := autopost.now_ts();
	v_by := v_now + p_within_ms * interval '1 millisecond';
	return query
	select s.stage from (values
		('deliveries', exists (select 1 from autopost.armed_parts('[]', v_by))),
		('acts', exists (select 1 from autopost.act_workspaces(v_by, 1))),
		('submissions', exists (select 1 from autopost.submission_workspaces(v_by, 1))),
		('fanout', exists (select 1 from autopost.fanout_workspaces(v_by, 1))),
		('recurrences', exists (select 1 from autopost.recurrence_workspaces(v_by, 1))),
		('sources', exists (select 1 from autopost.source_polls() p where p.due_at <= v_by)),
		('files', exists (select 1 from autopost.file_source_work() f where f.due_at <= v_by)),
		('results', exists (select 1 from autopost.webhook_workspaces(v_by, 1))),
		('moderation', exists (select 1 from autopost.moderation_workspaces(v_by, 1))),
		('bot', exists (select 1 from autopost.bot_workspaces(v_by, 1))),
		('leases', exists (select 1 from autopost.lapsed_workspaces(v_now, 1)))) s (stage, due)
	where s.due;
end
$$;
