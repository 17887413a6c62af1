create or replace function autopost.flow_of(p_workspace_id text, p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: calls per minute and platform in the hour before p_now: [{"platform", "sent": 60 numbers,
--          the oldest minute first, "failed": likewise}]. The newest 20,000 events are counted.
-- Reads:   events, channels.
declare
	v_most constant int := 20000;
	v_from constant timestamptz := p_now - interval '1 hour';
begin
	return (
		with recent as materialized (
			select e.ts, e.action, e.channel_id from autopost.events e
			where e.workspace_id = p_workspace_id and e.ts > v_from
			order by e.ts desc, e.id desc limit v_most
		), counted as materialized (
			select c.platform, least(59, floor(extract(epoch from r.ts - v_from) / 60))::int as minute,
				count(*) filter (where r.action = 'sent') as sent, count(*) filter (where r.action <> 'sent') as failed
			from recent r
			join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = r.channel_id
			where r.action in ('sent', 'retry_scheduled', 'failed_permanent', 'unknown_outcome')
			group by 1, 2
		)
		select coalesce(jsonb_agg(jsonb_build_object('platform', p.platform, 'sent', p.sent, 'failed', p.failed)
			order by p.platform), '[]')
		from (
			select f.platform, jsonb_agg(coalesce(k.sent, 0) order by m.minute) as sent,
				jsonb_agg(coalesce(k.failed, 0) order by m.minute) as failed
			from (select distinct c.platform from counted c) f
			cross join generate_series(0, 59) m (minute)
			left join counted k on k.platform = f.platform and k.minute = m.minute
			group by f.platform) p);
end
$$;

create or replace function autopost.get_overview(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns what the first page shows of a workspace, in one call.
-- Returns: {"status": of the workspace, "health": as health_snapshot, "alerts": the worst 20 that are
--          open, "flow": [{"platform", "sent": per minute of the last hour, the oldest first,
--          "failed"}]}.
-- Reads:   as health_of; alerts, events, channels.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := autopost.now_ts();
begin
	return jsonb_build_object('status', v_status, 'health', autopost.health_of(p_workspace_id),
		'alerts', (
			select coalesce(jsonb_agg(jsonb_build_object('alert_id', l.alert_id, 'kind', l.kind, 'subject', l.subject,
				'severity', l.severity, 'what', l.what, 'remedy', l.remedy, 'amount', l.amount, 'meta', l.meta,
				'raised_at', l.raised_at, 'acknowledged_at', l.acknowledged_at) order by l.rank, l.raised_at desc), '[]')
			from (select a.alert_id, a.kind, a.subject, a.severity, a.what, a.remedy, a.amount, a.meta, a.raised_at,
					a.acknowledged_at,
					array_position('{critical,error,warning}', a.severity) as rank
				from autopost.alerts a
				where a.workspace_id = p_workspace_id and a.ended_at is null
				order by rank, a.raised_at desc limit 20) l),
		'flow', autopost.flow_of(p_workspace_id, v_now));
end
$$;
