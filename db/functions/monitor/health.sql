create or replace function autopost.submission_counts(p_workspace_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: counts submissions that are not enqueued, by status, each up to 10,000.
-- Returns: {status: count}, without statuses that have none.
-- Reads:   submissions.
begin
	return (
		select coalesce(jsonb_object_agg(k.status, c.n) filter (where c.n > 0), '{}')
		from unnest('{new,fetching,pending,skipped,rejected,expired,failed}'::text[]) k (status)
		cross join lateral (
			select count(*) as n from (
				select 1 from autopost.submissions s
				where s.workspace_id = p_workspace_id and s.status = k.status limit 10000) x) c);
end
$$;

create or replace function autopost.health_of(p_workspace_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the snapshot of health_snapshot.
-- Reads:   queue_snapshot (view), deliveries, channels, credential_health, pull_sources,
--          pull_cursors, alerts, messages, submissions.
declare
	v_now timestamptz := autopost.now_ts();
begin
	return jsonb_build_object('at', v_now,
		'queue', (select coalesce(jsonb_object_agg(q.status, q.deliveries), '{}') from autopost.queue_snapshot_rows q
			where q.workspace_id = p_workspace_id),
		'oldest_due_at', (select min(q.oldest_due_at) from autopost.queue_snapshot_rows q
			where q.workspace_id = p_workspace_id and q.status in ('queued', 'retry') and q.oldest_due_at <= v_now),
		'submissions', autopost.submission_counts(p_workspace_id),
		'paused_channels', autopost.paused_channels(p_workspace_id, v_now),
		'failed_24h', (select count(*) from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.phase in ('dead', 'failed_permanent')
				and d.finished_at > v_now - interval '24 hours'),
		'top_errors', (
			select coalesce(jsonb_agg(jsonb_build_object('code', e.code, 'count', e.n) order by e.n desc, e.code), '[]')
			from (
				select coalesce(d.last_error ->> 'code', 'no error') as code, count(*) as n
				from (
					(select x.last_error from autopost.deliveries x
						where x.workspace_id = p_workspace_id and x.phase = 'dead' order by x.finished_at desc
						limit 500)
					union all
					(select x.last_error from autopost.deliveries x
						where x.workspace_id = p_workspace_id and x.phase = 'failed_permanent'
						order by x.finished_at desc limit 500)) d
				group by 1 order by 2 desc, 1 limit 5) e),
		'credentials', (
			select coalesce(jsonb_agg(jsonb_build_object('auth_ref', h.auth_ref, 'valid_until', h.valid_until,
				'lost_at', h.lost_at) order by h.auth_ref), '[]')
			from autopost.credential_health h
			where h.workspace_id = p_workspace_id
			and (h.lost_at is not null or h.next_refresh_at is null
				and h.valid_until <= v_now + autopost.setting_interval('auth_warn_days'))),
		'sources', (
			select coalesce(jsonb_agg(jsonb_build_object('source_id', s.source_id, 'failures', u.failures, 'stopped',
				s.stopped is not null) order by s.source_id), '[]')
			from autopost.pull_sources s
			left join autopost.pull_cursors u on u.workspace_id = p_workspace_id and u.source_id = s.source_id
			where s.workspace_id = p_workspace_id and (s.enabled and u.failures > 0 or s.stopped is not null)),
		'alerts', (
			select coalesce(jsonb_object_agg(a.severity, a.n), '{}')
			from (select x.severity, count(*) as n from autopost.alerts x
				where x.workspace_id = p_workspace_id and x.ended_at is null group by 1) a),
		'last_posts', (
			select coalesce(jsonb_agg(jsonb_build_object('message_id', m.message_id, 'created_at', m.created_at,
				'deliveries', (
				select coalesce(jsonb_object_agg(s.status, s.n), '{}')
				from (select d.status, count(*) as n from autopost.deliveries d
					where d.workspace_id = p_workspace_id and d.message_id = m.message_id group by 1) s))
				order by m.created_at desc), '[]')
			from (select x.message_id, x.created_at from autopost.messages x where x.workspace_id = p_workspace_id
				order by x.created_at desc limit 5) m));
end
$$;
