create or replace function autopost.x_post_stats(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the events of the last 7 days in numbers.
-- Returns: {"since", "counts": {status: n}, "byType": {eventType: {status: n}}, "successRate": posted
--          of posted and failed, null without either, "queueDepth", "pendingModeration",
--          "latencySeconds": {"p50", "p95"} from receipt to post}.
-- Reads:   x_post_events (view).
declare
	v_since timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_since := autopost.now_ts() - interval '7 days';
	with rows as materialized (
		select v.status, v."eventType" as type, extract(epoch from v."postedAt" - v."createdAt") as seconds, v.backfill
		from autopost.x_post_events_rows v
		where v.workspace_id = p_workspace_id and v."_id" >= autopost.first_id_at(v_since)
	), counted as (
		select r.type, r.status, count(*) as n from rows r group by r.type, r.status
	)
	select jsonb_build_object('since', v_since,
		'counts', (select coalesce(jsonb_object_agg(x.status, x.n), '{}') from (
			select c.status, sum(c.n) as n from counted c group by c.status) x),
		'byType', (select coalesce(jsonb_object_agg(x.type, x.counts), '{}') from (
			select c.type, jsonb_object_agg(c.status, c.n) as counts from counted c group by c.type) x),
		'successRate', (select round(count(*) filter (where r.status = 'posted')::numeric / nullif(count(*), 0), 4)
			from rows r where r.status in ('posted', 'failed')),
		'latencySeconds', (select jsonb_build_object(
			'p50', percentile_cont(0.5) within group (order by r.seconds),
			'p95', percentile_cont(0.95) within group (order by r.seconds))
			from rows r where r.status = 'posted' and not r.backfill)) into v_answer;
	return v_answer || (
		select jsonb_build_object('queueDepth', count(*) filter (where v.status = 'approved'),
			'pendingModeration', count(*) filter (where v.status = 'pending'))
		from autopost.x_post_events_rows v where v.workspace_id = p_workspace_id);
end
$$;
