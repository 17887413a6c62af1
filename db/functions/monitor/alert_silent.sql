-- Checks for failures that nothing else reports. Each reads an index of faulty rows only.

create or replace function autopost.look_at_refusals(p_workspace_id text, p_now timestamptz) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds channels that their platform refuses, from the first refusal until a post is sent
--          or an operator resumes them. Refused credentials and lost rights have their own alerts;
--          a channel that an operator disabled is not reported.
-- Reads:   channels, deliveries.
begin
	return query
	select f.* from (
		select c.channel_id, c.platform, c.enabled, c.paused_until from autopost.channels c
		where c.workspace_id = p_workspace_id and c.paused_until is not null and c.error_streak > 0 and not c.auth_held
			and c.rights_held is null
		and (c.enabled or c.error_streak >= autopost.setting('disable_after_permanent_streak'))
		order by c.channel_id limit 100) c
	left join lateral (
		select d.last_error from (
			select x.status, x.last_error, x.delivery_id from autopost.deliveries x
			where x.workspace_id = p_workspace_id and x.channel_id = c.channel_id
				and x.phase in ('sent', 'deduped', 'failed_permanent', 'dead') and x.status <> 'deduped'
			order by x.delivery_id desc limit 20) d
		where d.status = 'failed_permanent' and d.last_error ->> 'scope' = 'channel'
		order by d.delivery_id desc limit 1) e on true
	cross join lateral (
		select count(*) as n from (
			select 1 from autopost.deliveries x
			where x.workspace_id = p_workspace_id and x.channel_id = c.channel_id
				and x.phase in ('active', 'retry') and x.status <> 'sending'
				limit 100) x) w
	cross join lateral autopost.finding('channel_refused', 'channel:' || c.channel_id, 1, 1,
		format('channel %s: %s refuses its posts (%s): it is %s, %s',
		c.channel_id, c.platform, left(coalesce(e.last_error ->> 'message', e.last_error ->> 'code', 'see its events'),
			200),
		case when not c.enabled then 'disabled' when c.paused_until > p_now
			then 'paused until ' || to_char(c.paused_until at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
			else 'tried again with the next post' end, autopost.how_many(w.n, 100, 'post waits', 'posts wait')),
		jsonb_strip_nulls(jsonb_build_object('code', e.last_error -> 'code'))) f;
end
$$;

create or replace function autopost.look_at_held(p_workspace_id text, p_level jsonb) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds deliveries with an unknown outcome that wait for an operator.
-- Reads:   deliveries.
declare
	v_most constant bigint := 1000;
begin
	return query select f.* from (
		select count(*) as n,
			array_to_string((array_agg(format('%s in %s', d.delivery_id, d.channel_id) order by d.delivery_id))[1:3],
			', ') as sample from (
			select x.delivery_id, x.channel_id from autopost.deliveries x
			where x.workspace_id = p_workspace_id and x.phase = 'retry' and x.next_retry_at = 'infinity'
				limit v_most) d) h
	cross join lateral autopost.finding('outcome_held', 'deliveries',
		h.n, (p_level ->> 'alert_unknown_waiting')::numeric,
		format('%s: %s%s', autopost.how_many(h.n, v_most, 'post waits for a person, it is unknown if it was published',
			'posts wait for a person, it is unknown if they were published'), h.sample,
			case when h.n > 3 then ', … (autopost deliveries list --status retry)' else '' end)) f;
end
$$;

create or replace function autopost.look_at_webhooks(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds result webhooks whose calls have all failed for some time.
-- Reads:   result_webhooks, webhook_sends.
begin
	return query select f.* from (
		select w.webhook_id, w.failing_since from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.enabled and w.failing_since is not null
		order by w.webhook_id limit 100) w
	left join lateral (
		select s.error from autopost.webhook_sends s
		where s.workspace_id = p_workspace_id and s.webhook_id = w.webhook_id and s.status in ('pending', 'sending')
		order by s.due_at desc limit 1) s on true -- failed requests come last
	cross join lateral autopost.finding('webhook_failing', 'webhook:' || w.webhook_id,
		floor(extract(epoch from p_now - w.failing_since)),
		(p_level ->> 'alert_webhook_failing_seconds')::numeric,
		format('result webhook %s has accepted nothing for %s, its events wait: %s', w.webhook_id,
			autopost.minutes_text(p_now - w.failing_since), left(coalesce(s.error, 'no call succeeds'), 200))) f;
end
$$;

create or replace function autopost.unheard_workspaces() returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds workspaces whose enabled alert targets all fail.
-- Reads:   alert_targets.
declare
	v_mine text[] := autopost.served_workspaces();
begin
	return query select f.* from (
		select t.workspace_id, min(t.last_error ->> 'message') as error from autopost.alert_targets t
		where t.enabled and (v_mine is null or t.workspace_id = any (v_mine))
		group by t.workspace_id
		having bool_and(t.failures >= 3 or t.failures > 0 and coalesce(t.last_error ->> 'category' = 'PERMANENT', false))
		order by t.workspace_id limit 100) w
	cross join lateral autopost.finding('alerts_undelivered', 'workspace:' || w.workspace_id, 1, 1,
		format('the alerts of workspace %s reach nobody: %s', w.workspace_id, left(w.error, 200))) f;
end
$$;

create or replace function autopost.lost_daemons(p_level jsonb, p_now timestamptz) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds daemons that stopped without ending their run while others continue, unless a
--          later one replaced them on the same host.
-- Reads:   dispatch_runs.
declare
	v_silence interval := make_interval(secs => coalesce(nullif((p_level ->> 'alert_daemon_silence_seconds')::float8,
		0), 180));
begin
	return query select f.* from (
		select r.run_id, r.host, r.seen_at from autopost.dispatch_runs r
		where r.ended_at is null and r.host is not null and r.seen_at <= p_now - v_silence
		and r.seen_at > p_now - make_interval(hours => (p_level ->> 'alert_daemon_lost_hours')::int)
		and exists (select 1 from autopost.dispatch_runs x where x.seen_at > p_now - v_silence and x.ended_at is null)
		and not exists (select 1 from autopost.dispatch_runs x where x.host = r.host and x.started_at > r.seen_at)
		order by r.run_id limit 20) l
	cross join lateral autopost.finding('daemon_lost', 'daemon:' || l.run_id, 1, 1,
		format('the daemon%s has not been heard of since %s; others go on. Its run was %s',
		' on ' || l.host, to_char(l.seen_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), l.run_id)) f;
end
$$;
