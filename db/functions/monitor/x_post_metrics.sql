create or replace function autopost.x_post_metrics()
returns table (event_type text, status text, reason text, backfill boolean, events bigint, seconds numeric,
	buckets bigint[])
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the kept domain events as counters: per type, status and code of the failure. For posted
--          ones also the sum of the seconds from receipt to post, and how many took at most 1, 5, 15,
--          60, 300, 900, 3600, 21600 and 86400 seconds. Works across workspaces.
-- Reads:   x_post_events (view), submissions, deliveries.
declare
	v_mine text[];
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.served_workspaces();
	return query
	select x.type, x.status, x.reason, x.backfill, count(*), sum(x.seconds), array[
		count(*) filter (where x.seconds <= 1), count(*) filter (where x.seconds <= 5),
		count(*) filter (where x.seconds <= 15), count(*) filter (where x.seconds <= 60),
		count(*) filter (where x.seconds <= 300), count(*) filter (where x.seconds <= 900),
		count(*) filter (where x.seconds <= 3600), count(*) filter (where x.seconds <= 21600),
		count(*) filter (where x.seconds <= 86400)]
	from (
		select v."eventType" as type, v.status, case when v.status = 'failed'
				then coalesce((select d.last_error ->> 'code' from autopost.deliveries d
						where d.workspace_id = s.workspace_id and d.message_id = s.message_id
							and d.ingest_run_id = s.run_id
							and (v_mine is null or d.workspace_id = any (v_mine))
						order by d.delivery_id limit 1),
					s.last_error ->> 'code', 'unknown') else '' end as reason,
			v.backfill, case when v.status = 'posted' and not v.backfill
				then extract(epoch from v."postedAt" - v."createdAt") end as seconds
		from autopost.x_post_events_rows v
		join autopost.submissions s on s.workspace_id = v.workspace_id and s.submission_id = v."_id"
		where (v_mine is null or v.workspace_id = any (v_mine)) and (v_mine is null or s.workspace_id = any (v_mine))) x
	group by x.type, x.status, x.reason, x.backfill;
end
$$;
