-- Checks of check_alerts. They use indexes of waiting and faulty rows and never read the history.

create or replace function autopost.how_many(p_count bigint, p_most bigint, p_one text, p_many text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a count with its noun; the count stopped at p_most.
select case when p_count >= p_most then format('%s or more %s', p_most, p_many)
	else autopost.counted(p_count, p_one, p_many) end
$$;

create or replace function autopost.minutes_text(p_interval interval) returns text
language sql immutable parallel safe
as $$
-- Purpose: a duration in whole minutes: "1 minute", "15 minutes".
select autopost.counted(floor(extract(epoch from p_interval) / 60)::bigint, 'minute', 'minutes')
$$;

create or replace function autopost.seen_until(p_workspace_id text, p_kind text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the time of the last acknowledgement of such an alert. Only later failures raise it
--          again; the older rows stay.
-- Reads:   alerts.
begin
	return coalesce((select max(a.acknowledged_at) from autopost.alerts a
		where a.workspace_id = p_workspace_id and a.kind = p_kind and a.acknowledged_at is not null), '-infinity');
end
$$;

create or replace function autopost.look_at_deliveries(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds dead, failed, unknown and overdue deliveries. A delivery that a person skipped is
--          not reported.
-- Reads:   deliveries, channels, channel_gates, platform_limits, alerts.
declare
	v_most bigint := greatest(1000, (p_level ->> 'alert_dead_threshold')::bigint,
		(p_level ->> 'alert_dead_many')::bigint,
		(p_level ->> 'alert_failed_perm_10m')::bigint + 1, (p_level ->> 'alert_unknown_waiting')::bigint);
	v_seen timestamptz := autopost.seen_until(p_workspace_id, 'dead');
	v_count bigint;
	v_sample text;
	v_oldest record;
begin
	select count(*) into v_count from (
		select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id and d.phase = 'dead'
			and d.finished_at > v_seen and d.last_error ->> 'code' is distinct from 'manual_skip' limit v_most) d;
	if v_count > 0 then
		v_sample := autopost.newest_failures(p_workspace_id, 'dead', v_seen);
		return query select autopost.finding('dead', 'deliveries',
			v_count, (p_level ->> 'alert_dead_threshold')::numeric,
			format('%s: %s', autopost.how_many(v_count, v_most, 'dead delivery', 'dead deliveries'), v_sample));
		return query select autopost.finding('dead_many', 'deliveries',
			v_count, (p_level ->> 'alert_dead_many')::numeric,
			format('%s: %s', autopost.how_many(v_count, v_most, 'dead delivery', 'dead deliveries'), v_sample));
	end if;
	select count(*) into v_count from (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.phase = 'failed_permanent'
			and d.finished_at > p_now - interval '10 minutes' limit v_most) d;
	if v_count > 0 then
		return query select autopost.finding('failed_permanent', 'deliveries', v_count,
			coalesce(nullif((p_level ->> 'alert_failed_perm_10m')::numeric, 0) + 1, 0),
			format('%s failed for good in 10 minutes: %s',
				autopost.how_many(v_count, v_most, 'delivery', 'deliveries'),
				autopost.newest_failures(p_workspace_id, 'failed_permanent', p_now - interval '10 minutes')));
	end if;
	v_seen := autopost.seen_until(p_workspace_id, 'unknown_outcome');
	select count(*) into v_count from (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.phase = 'failed_permanent' and d.outcome_unknown_at is not null
			and d.finished_at > v_seen
		and d.last_error ->> 'code' = 'unknown_outcome'
		limit v_most) d;
	return query select autopost.finding('unknown_outcome', 'deliveries',
		v_count, (p_level ->> 'alert_unknown_waiting')::numeric,
		format('%s ended with an unknown outcome', autopost.how_many(v_count, v_most, 'delivery', 'deliveries')));
	select o.due_at, g.channel_id into v_oldest
	from autopost.late_gates(p_workspace_id, autopost.late_before(p_level, p_now)) g
	cross join lateral (
		select row(c.*)::autopost.channels from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = g.channel_id limit 1) c (channel)
	cross join lateral (
		select d.due_at from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = g.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
		order by d.due_at limit 1) o
	where not autopost.is_held(c.channel, g.ready_at, p_now)
	order by o.due_at limit 1;
	return query select autopost.finding('oldest_due', 'deliveries',
		floor(extract(epoch from p_now - v_oldest.due_at)), (p_level ->> 'alert_oldest_due_seconds')::numeric,
		format('a post has been due for %s, in channel %s', autopost.minutes_text(p_now - v_oldest.due_at),
			v_oldest.channel_id))
		where v_oldest.due_at is not null;
end
$$;

create or replace function autopost.late_before(p_level jsonb, p_now timestamptz) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: the time before which a due delivery may raise an alert; null if the alert is off. A
--          finding counts from four fifths of its level.
select p_now - nullif((p_level ->> 'alert_oldest_due_seconds')::numeric, 0) * interval '0.8 seconds'
$$;

create or replace function autopost.late_gates(p_workspace_id text, p_before timestamptz)
	returns table (channel_id text, ready_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the channels that may have a delivery due before p_before: those without a visit since,
--          and those that rearm_gates marked as late. Reads channel_gates_armed once per rate
--          group.
-- Reads:   channel_gates, platform_limits.
begin
	return query
	select l.channel_id, l.ready_at from autopost.channel_gates l
	where l.workspace_id = p_workspace_id and l.late
	union
	select u.channel_id, u.ready_at
	from autopost.ready_groups(p_workspace_id) r
	cross join lateral (
		select g.channel_id, g.ready_at from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.platform = r.platform and g.rate_group = r.rate_group
		and g.ready_at <= p_before and g.ready_at < 'infinity') u;
end
$$;

create or replace function autopost.newest_failures(p_workspace_id text, p_status text, p_since timestamptz)
	returns text
language plpgsql stable
as $$
-- Purpose: summarises the newest 100 failures: "tg_forbidden in news (3), …".
-- Reads:   deliveries.
begin
	return (
		select string_agg(format('%s in %s (%s)', t.code, t.channel_id, t.n), ', '
			order by t.n desc, t.code, t.channel_id)
		from (
			select coalesce(d.last_error ->> 'code', 'no error') as code, d.channel_id, count(*) as n
			from (
				select x.last_error, x.channel_id from autopost.deliveries x
				where x.workspace_id = p_workspace_id and x.phase in ('dead', 'failed_permanent') and x.phase = p_status
					and x.finished_at > p_since
				and x.last_error ->> 'code' is distinct from 'manual_skip'
				order by x.finished_at desc limit 100) d
			group by 1, 2 order by 3 desc, 1, 2 limit 3) t);
end
$$;

create or replace function autopost.paused_channels(p_workspace_id text, p_now timestamptz) returns bigint
language plpgsql stable
as $$
-- Purpose: counts channels that are paused, and those that a series of failures has disabled, which
--          keep their last pause. A channel that a person disabled does not count.
-- Reads:   channels, settings.
begin
	return (
		select count(*) from autopost.channels c
		where c.workspace_id = p_workspace_id and c.paused_until is not null and case
			when c.enabled then c.paused_until > p_now
			else c.error_streak >= autopost.setting('disable_after_permanent_streak') end);
end
$$;

create or replace function autopost.look_at_channels(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds paused channels, open circuit breakers and posts that wait for a decision.
-- Reads:   channels, platform_limits, submissions.
begin
	return query select autopost.finding('paused_channels', 'channels', c.n,
		coalesce(nullif((p_level ->> 'alert_paused_channels')::numeric, 0) + 1, 0),
		autopost.counted(c.n, 'channel is', 'channels are') || ' paused or disabled by failures')
	from (select autopost.paused_channels(p_workspace_id, p_now) as n) c;
	return query select f.* from (
		select l.platform, l.rate_group, extract(epoch from p_now - l.breaker_opened_at) as seconds
			from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.breaker_opened_at is not null
		order by l.platform, l.rate_group limit 100) b
	cross join lateral autopost.finding('breaker_open', format('group:%s/%s', b.platform, b.rate_group),
		floor(b.seconds), (p_level ->> 'alert_breaker_seconds')::numeric,
		format('group %s/%s: the platform has failed for %s, its posts wait', b.platform, b.rate_group,
			autopost.minutes_text(make_interval(secs => b.seconds::float8)))) f;
	return query select autopost.finding('moderation_backlog', 'submissions',
		s.n, (p_level ->> 'alert_moderation_backlog')::numeric,
		autopost.how_many(s.n, 10000, 'post waits for a decision', 'posts wait for a decision'))
	from (
		select count(*) as n from (
			select 1 from autopost.submissions x
			where x.workspace_id = p_workspace_id and x.status = 'pending' limit 10000) y) s;
end
$$;

create or replace function autopost.look_at_submissions(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds posts that failed before they had deliveries, and those without progress although
--          their time has come: submissions, post changes, and what left_work finds.
-- Reads:   submissions, publish_jobs, post_acts, channels, alerts; as left_work.
declare
	v_seen timestamptz := autopost.seen_until(p_workspace_id, 'submission_failed');
	v_late constant interval := (p_level ->> 'alert_oldest_due_seconds')::numeric * interval '1 second';
begin
	return query select autopost.finding('submission_failed', 'submissions', f.n, 1,
		format('%s: %s', autopost.how_many(f.n, 1000, 'post failed before it could be queued',
			'posts failed before they could be queued'), f.code))
	from (
		select count(*) as n, coalesce(max(x.last_error ->> 'code'), 'no error') as code from (
			select s.last_error from autopost.submissions s
			where s.workspace_id = p_workspace_id and s.status = 'failed' and s.updated_at > v_seen limit 1000) x) f
	where f.n > 0;
	return query select f.* from (
		select distinct on (j.status, j.job_id) j.status, j.job_id, j.platform, j.error from autopost.publish_jobs j
		where j.workspace_id = p_workspace_id and j.status in ('failed', 'unknown')
			and j.updated_at > autopost.seen_until(p_workspace_id, 'publish_job_' || j.status)
		order by j.status, j.job_id, j.platform
		limit 100) c
	cross join lateral autopost.finding('publish_job_' || c.status, 'job:' || c.job_id, 1, 1, format('job %s on %s: %s',
		c.job_id, c.platform, concat_ws(': ', c.error ->> 'code', left(c.error ->> 'message', 200))),
			jsonb_build_object(
		'platform', c.platform)) f;
	return query select autopost.finding('oldest_due', 'submissions', floor(extract(epoch from p_now - o.since)),
		extract(epoch from v_late), format('submission %s has made no progress for %s', o.submission_id,
			autopost.minutes_text(p_now - o.since)))
	from (
		select s.submission_id, greatest(s.next_attempt_at, s.lease_until) as since from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status = 'fetching'
			and s.next_attempt_at <= p_now - v_late * 0.8
		order by 2 limit 1) o
	where v_late > interval '0' and o.since <= p_now - v_late * 0.8;
	return query select autopost.finding('oldest_due', 'post_changes', floor(extract(epoch from p_now - o.next_at)),
		extract(epoch from v_late), format('post change %s has made no progress for %s, in channel %s', o.act_id,
			autopost.minutes_text(p_now - o.next_at), o.channel_id))
	from (
		select a.act_id, a.channel_id, a.next_at from autopost.post_acts a
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = a.channel_id and c.enabled
			and coalesce(greatest(c.paused_until, c.cooldown_until, c.credential_until), '-infinity') <= p_now -
				v_late * 0.8
		where a.workspace_id = p_workspace_id and a.status in ('queued', 'sending', 'retry')
			and a.next_at <= p_now - v_late * 0.8
		order by a.next_at limit 1) o
	where v_late > interval '0';
	return query select autopost.finding('oldest_due', 'other_work', floor(extract(epoch from p_now - o.since)),
		extract(epoch from v_late), format('%s for %s minutes: %s', o.work ->> 'what',
			floor(extract(epoch from p_now - o.since) / 60), coalesce(o.work ->> 'webhook_id', o.work ->> 'source_id',
				o.work ->> 'job_id', o.work ->> 'recurrence_id', 'chat ' || (o.work ->> 'chat_id'),
				o.work ->> 'reply_id')))
	from (
		select l.work, l.since from autopost.left_work(p_workspace_id, v_late * 0.8) l
		where v_late > interval '0'
		order by l.since limit 1) o;
end
$$;

create or replace function autopost.look_at_connections(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds missing and expiring credentials, failed renewals, and failing or stopped sources.
-- Reads:   channels, channel_auth, credential_health, pull_sources, pull_cursors.
begin
	return query select f.* from (
		select autopost.current_auth_ref(p_workspace_id, row(c.*)::autopost.channels) as auth_ref, c.platform,
			count(*) as n
		from autopost.channels c
		where c.workspace_id = p_workspace_id and c.enabled and c.credential_missing_at is not null
		-- between two looks a claim is in flight
		and c.credential_until > p_now - interval '1 minute'
		group by 1, 2 order by 1, 2 limit 100) c
	cross join lateral autopost.finding('credential_missing', 'credential:' || c.auth_ref, c.n, 1,
		format('%s: the posts of %s channels wait (credential_missing)', coalesce(
			autopost.credential_fault(p_workspace_id, c.auth_ref, c.platform),
			format('the secret of credential %s was not found', c.auth_ref)), c.n)) f;
	return query select f.* from (
		select h.auth_ref, h.valid_until from autopost.credential_health h
		where h.workspace_id = p_workspace_id and h.next_refresh_at is null and h.lost_at is null
		and h.valid_until <= p_now + autopost.setting_interval('auth_warn_days')
		order by h.auth_ref limit 100) c
	cross join lateral autopost.finding('auth_expiring', 'credential:' || c.auth_ref, 1, 1,
		format('credential %s %s %s, its channels stop with it', c.auth_ref,
		case when c.valid_until <= p_now then 'expired on' else 'expires on' end,
			to_char(c.valid_until at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))) f;
	return query select f.* from (
		select h.auth_ref, h.failures, h.error from autopost.credential_health h
		where h.workspace_id = p_workspace_id and h.failures > 0 and h.next_refresh_at is not null and h.lost_at is null
		order by h.auth_ref limit 100) c
	cross join lateral autopost.finding('auth_not_renewed', 'credential:' || c.auth_ref, c.failures, 3,
		format('credential %s could not be renewed %s: %s', c.auth_ref, autopost.counted(c.failures, 'time', 'times'),
			left(c.error ->> 'message', 200))) f;
	return query select f.* from (
		select s.source_id, u.failures, u.last_error from autopost.pull_sources s
		join autopost.pull_cursors u on u.workspace_id = p_workspace_id and u.source_id = s.source_id and u.failures > 0
		where s.workspace_id = p_workspace_id and s.enabled
		order by s.source_id limit 100) c
	cross join lateral autopost.finding('source_failing', 'source:' || c.source_id,
		c.failures, (p_level ->> 'alert_source_failures')::numeric,
		format('source %s failed %s in a row, nothing comes from it: %s', c.source_id,
			autopost.counted(c.failures, 'time', 'times'),
			left(c.last_error ->> 'message', 200))) f;
	return query select f.* from (
		select s.source_id, s.stopped from autopost.pull_sources s
		where s.workspace_id = p_workspace_id and s.stopped is not null
		order by s.source_id limit 100) c
	cross join lateral autopost.finding('source_stopped', 'source:' || c.source_id, 1,
		sign((p_level ->> 'alert_source_failures')::numeric),
		format('source %s was stopped, nothing comes from it: %s', c.source_id, left(c.stopped ->> 'message', 200))) f;
end
$$;

create or replace function autopost.is_over(p_run_id text, p_reported_at timestamptz, p_now timestamptz)
	returns boolean
language plpgsql stable
as $$
-- Purpose: true if a daemon, whose monitor last reported at p_reported_at, has ended, is silent, or
--          was replaced by a later one on its host. A run without a dispatcher is not over.
-- Reads:   dispatch_runs.
begin
	return exists (
		select 1 from autopost.dispatch_runs r
		where r.run_id = p_run_id and (r.ended_at is not null
			or r.seen_at <= p_now - autopost.run_silence() and p_reported_at <= r.seen_at + autopost.run_silence()
			or exists (select 1 from autopost.dispatch_runs x where x.host = r.host and x.started_at > r.seen_at)));
end
$$;

create or replace function autopost.look_at_installation(p_level jsonb, p_now timestamptz) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds problems of all workspaces: daemons, duties, clocks, partitions of events, alerts
--          that reach nobody. Reports of daemons that are over do not count.
-- Reads:   dispatch_runs, monitor_duties, clock_jumps, events (its partitions), alert_targets.
declare
	v_mine text[] := autopost.served_workspaces();
	v_late constant interval := interval '15 minutes'; -- failures of a monitor that is silent for longer do not count
begin
	return query select autopost.finding('no_dispatcher', 'daemons',
		floor(extract(epoch from p_now - r.seen_at)), (p_level ->> 'alert_daemon_silence_seconds')::numeric,
		format('no daemon has dispatched since %s',
			to_char(r.seen_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')))
	from (select max(x.seen_at) as seen_at from autopost.dispatch_runs x) r where r.seen_at is not null;
	return query select f.* from autopost.lost_daemons(p_level, p_now) f;
	return query select f.* from (
		select d.duty, max(d.failures) as failures, max(d.error) as error from autopost.monitor_duties d
		where d.failures > 0 and d.duty <> 'disks' and d.duty not like 'stage:%'
		and d.reported_at > p_now - interval '1 day'
		and exists (select 1 from autopost.monitor_duties x
			where x.run_id = d.run_id and x.reported_at > p_now - v_late)
		and not autopost.is_over(d.run_id, d.reported_at, p_now)
		group by d.duty) c
	cross join lateral autopost.finding('duty_failing', 'duty:' || c.duty,
		c.failures, (p_level ->> 'alert_duty_failures')::numeric,
		format('%s failed %s in a row: %s', c.duty, autopost.counted(c.failures, 'time', 'times'), left(c.error,
			300))) f;
	return query select f.* from (
		select d.duty, sum(d.failures) as failures, max(d.error) as error from autopost.monitor_duties d
		where d.duty like 'stage:%' and d.failures > 0 and d.reported_at > p_now - v_late
		group by d.duty) c
	cross join lateral autopost.finding('stage_panicked', c.duty, c.failures, 1,
		format('the stage %s panicked %s: %s', substr(c.duty, 7), autopost.counted(c.failures, 'time', 'times'),
			left(c.error, 300))) f;
	return query select autopost.finding('disk_low', 'disks', count(*), 1,
		left(string_agg(d.error, '; ' order by d.error), 500))
	from (
		select distinct x.error from autopost.monitor_duties x
			where x.duty = 'disks' and x.failures > 0 and x.reported_at > p_now - v_late
			and not autopost.is_over(x.run_id, x.reported_at, p_now)) d;
	return query select autopost.finding('clock_skew', 'clocks',
		abs(c.skew_ms), (p_level ->> 'alert_clock_skew_ms')::numeric,
		format('the clock of the daemon%s is %s ms %s the database''s', ' on ' || c.host, abs(c.skew_ms), case
			when c.skew_ms > 0 then 'ahead of' else 'behind' end))
	from (
		select d.skew_ms, r.host from autopost.monitor_duties d
		left join autopost.dispatch_runs r on r.run_id = d.run_id
		where d.duty = 'watch' and d.reported_at > p_now - v_late and not autopost.is_over(d.run_id, d.reported_at,
			p_now)
		order by abs(d.skew_ms) desc limit 1) c;
	return query select autopost.finding('clock_jumped', 'clocks', abs(autopost.milliseconds(j.jump)), 1,
		format('the clock of the database jumped by %s', j.jump))
	from (
		select x.jump from autopost.clock_jumps x where x.observed_at between p_now - interval '1 hour' and p_now
		order by x.observed_at desc limit 1) j;
	return query select autopost.finding('config_differs', 'daemons', c.n - 1, 1,
		format('%s daemons have %s configurations', c.runs, c.n))
	from (
		select count(distinct d.config) as n, count(distinct d.run_id) as runs from autopost.monitor_duties d
			where d.duty = 'watch' and d.reported_at > p_now - v_late and not autopost.is_over(d.run_id,
				d.reported_at, p_now)) c;
	return query select f.* from autopost.unheard_workspaces() f;
	return query select autopost.finding('partitions_missing', 'events', count(*), 1,
		format('%s of the next days have no partition of events', count(*)))
	from generate_series(0, 1) n
	where to_regclass('autopost.events_' || to_char((p_now at time zone 'UTC')::date + n, 'YYYYMMDD')) is null;
	return query select autopost.finding('events_without_partition', 'events', 1, 1,
		'some events have no partition of their own')
	where exists (
		select 1 from autopost.events_default e where v_mine is null or e.workspace_id = any (v_mine));
end
$$;

create or replace function autopost.alert_levels() returns jsonb
language plpgsql stable
as $$
-- Purpose: the settings of the alerts.
-- Reads:   settings.
begin
	return (select jsonb_object_agg(s.key, s.value) from autopost.settings s where s.key like 'alert\_%');
end
$$;
