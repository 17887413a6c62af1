-- Order and time of calls. Each function returns the offending rows.

create or replace function autopost.verify_i11(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I11. Uses the reserved slots, and only since the last change of the
--          channel's row plus a second. The platform's view is in its own log. A later step of a
--          series has no event.
begin
	return query
	select jsonb_build_object('channel_id', s.channel_id, 'delivery_id', s.delivery_id, 'send_at', s.send_at, 'before',
		s.before, 'rate_rps', s.rate_rps)
	from (
		select e.channel_id, e.delivery_id, t.send_at, c.rate_rps,
			lag(t.send_at) over (partition by e.channel_id order by t.send_at) as before
		from autopost.channels c
		join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = c.channel_id
			and e.action = 'send_attempt' and e.ts > c.updated_at
		cross join lateral (select (e.meta ->> 'send_at')::timestamptz as send_at) t
		where c.workspace_id = p_workspace_id and c.rate_rps > 0 and t.send_at > c.updated_at + interval '1 second'
	) s
	where s.send_at < s.before + make_interval(secs => (1 / s.rate_rps)::float8) - interval '1 millisecond';
end
$$;

create or replace function autopost.verify_i13(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I13. Uses events, and only while channel or group still have the
--          cooldown: a manual change of the row leaves no event. The second of grace covers a call
--          that read the group just before the cooldown.
begin
	return query
	select jsonb_build_object('channel_id', e.channel_id, 'delivery_id', e.delivery_id, 'ts', e.ts, 'attempt',
		e.attempt,
		'scope', x.meta -> 'scope',
		'since', x.ts, 'until', x.meta -> 'until')
	from autopost.events x
	join autopost.channels o on o.workspace_id = p_workspace_id and o.channel_id = x.channel_id
	join autopost.channels c on c.workspace_id = p_workspace_id and c.platform = o.platform
		and c.rate_group = o.rate_group
	left join autopost.platform_limits l on l.workspace_id = p_workspace_id and l.platform = c.platform
		and l.rate_group = c.rate_group
	join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = c.channel_id
		and e.action = 'send_attempt'
	where x.workspace_id = p_workspace_id and x.action = 'cooldown'
	and e.ts > x.ts + interval '1 second' and e.ts < (x.meta ->> 'until')::timestamptz
	and case x.meta ->> 'scope' when 'channel' then c.channel_id = x.channel_id
		and c.cooldown_until >= (x.meta ->> 'until')::timestamptz
		else l.cooldown_until >= (x.meta ->> 'until')::timestamptz end;
end
$$;

create or replace function autopost.verify_i14(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I14. Calculates waits from the policy's row, not with the functions
--          that set them. The second of grace covers the time between the event and the wait. A
--          caller may ask for a longer wait. Waits of our own policy count only if the policy is
--          older than the event.
begin
	return query
	with policies as materialized (
		select r.own, r.version, r.platform, r.code, r.kind, r.base_ms, r.factor, r.cap_ms, r.ladder_ms, r.jitter
		from autopost.policies_of(p_workspace_id) r)
	select jsonb_build_object('delivery_id', e.delivery_id, 'ts', e.ts, 'attempt', e.attempt, 'next_retry_at',
		e.meta -> 'next_retry_at',
		'retry_after_ms', e.error -> 'retry_after_ms', 'least_ms', w.least_ms)
	from autopost.events e
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = e.channel_id
	cross join lateral (
		select r.version, r.jitter, case r.kind
			when 'ladder' then r.ladder_ms[least(e.attempt, cardinality(r.ladder_ms))]
			else least(r.cap_ms, r.base_ms * r.factor ^ least(e.attempt - 1, 60)) end as wait_ms
		from policies r
		where r.platform in (c.platform, '*') and r.code in (case when e.error ? 'moved' then 'chat_moved'
			else e.error ->> 'code' end, '*')
		order by r.platform = '*', r.code = '*', not r.own
		limit 1) p
	cross join lateral (
		select (e.error ->> 'retry_after_ms')::numeric > 0 as given,
			case when (e.error ->> 'retry_after_ms')::numeric > 0 then (e.error ->> 'retry_after_ms')::numeric
				else p.wait_ms * (1 - p.jitter) end as least_ms) w
	where e.workspace_id = p_workspace_id and e.action = 'retry_scheduled'
	and (w.given or (age(e.xmin) <= age(p.version) and e.ts >= (select autopost.policies_changed_at(p_workspace_id))))
	and (e.meta ->> 'next_retry_at')::timestamptz < e.ts + w.least_ms * interval '1 millisecond' - interval '1 second';
end
$$;

create or replace function autopost.verify_i15(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I15. Checks the latest pause of each channel while its row has it,
--          the latest disabling while no sent post or operator ended its streak, and calls since an
--          open breaker opened (probes). Changes by plain SQL and the status of a workspace leave
--          no event. A call that starts at the same moment is allowed.
begin
	return query
	with shut as (
		select distinct on (e.channel_id, e.action) e.channel_id, e.action, e.ts, e.meta from autopost.events e
		where e.workspace_id = p_workspace_id and e.action in ('channel_paused', 'channel_disabled')
		order by e.channel_id, e.action, e.ts desc, e.id desc
	)
	select jsonb_build_object('channel_id', c.channel_id, 'delivery_id', e.delivery_id, 'ts', e.ts, 'attempt',
		e.attempt,
		'shut_by', s.action, 'since', s.ts)
	from shut s
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = s.channel_id
	join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = s.channel_id
		and e.action = 'send_attempt'
		and e.ts > s.ts
	where case s.action
		when 'channel_paused' then e.ts < c.paused_until and c.paused_until = (s.meta ->> 'until')::timestamptz
		else not c.enabled and c.error_streak >= (s.meta ->> 'streak')::int end
	and not exists (
		select 1 from autopost.events o
		where o.workspace_id = p_workspace_id and o.channel_id = s.channel_id and o.action = 'channel_enabled'
			and o.ts between s.ts and e.ts)
	union all
	select jsonb_build_object('platform', l.platform, 'rate_group', l.rate_group, 'breaker_opened_at',
		l.breaker_opened_at,
		'probes', l.probes, 'calls', n.calls)
	from autopost.platform_limits l
	cross join lateral (
		select count(*) as calls from autopost.channels c
		join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = c.channel_id
			and e.action = 'send_attempt'
			and e.ts > greatest(l.breaker_opened_at, c.updated_at) + interval '1 second'
		where c.workspace_id = p_workspace_id and c.platform = l.platform and c.rate_group = l.rate_group) n
	where l.workspace_id = p_workspace_id and l.breaker_opened_at is not null and n.calls > l.probes;
end
$$;

create or replace function autopost.verify_i16(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I16. Finds calls before a deferred time, calls of the present
--          attempt before the time of the row, and calls outside the posting window. A waiting row
--          is not checked: it may have been deferred since its last call. The window counts only if
--          the channel's row did not change; the second of grace covers the time until the event is
--          written.
begin
	return query
	select jsonb_build_object('delivery_id', s.delivery_id, 'ts', s.ts, 'attempt', s.attempt, 'put_off_until',
		s.put_off_until)
	from (
		select e.delivery_id, e.ts, e.attempt, e.action,
			lag(case when e.action in ('retry_scheduled', 'released')
				then coalesce(e.meta ->> 'next_retry_at', e.meta ->> 'until')::timestamptz end)
				over (partition by e.delivery_id order by e.ts, e.id) as put_off_until,
			lag(e.attempt) over (partition by e.delivery_id order by e.ts, e.id) as put_off_attempt
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id is not null
		and e.action in ('send_attempt', 'retry_scheduled', 'released', 'unknown_resolved', 'manual_requeue')
	) s
	where s.action = 'send_attempt' and s.ts < s.put_off_until
	and s.attempt > s.put_off_attempt -- else the clock was put back between them, and their order is not known
	union all
	select jsonb_build_object('delivery_id', d.delivery_id, 'ts', e.ts, 'attempt', e.attempt, 'not_before',
		d.not_before,
		'scheduled_for', d.scheduled_for)
	from autopost.deliveries d
	join autopost.events e on e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id
		and e.action = 'send_attempt' and e.attempt = d.attempt
	where d.workspace_id = p_workspace_id and d.status not in ('queued', 'claimed', 'retry')
	and e.ts < greatest(d.not_before, d.scheduled_for)
	and not exists (
		select 1 from autopost.events m where m.workspace_id = p_workspace_id and m.delivery_id = d.delivery_id
			and m.action = 'rescheduled' and m.ts >= e.ts)
	union all
	select jsonb_build_object('delivery_id', e.delivery_id, 'ts', e.ts, 'attempt', e.attempt, 'send_at',
		e.meta -> 'send_at', 'timezone', c.timezone, 'posting_window', c.posting_window)
	from autopost.channels c
	join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = c.channel_id
		and e.action = 'send_attempt'
		and e.ts > c.updated_at
	cross join lateral (select greatest(e.ts, (e.meta ->> 'send_at')::timestamptz) as began_at) b
	where c.workspace_id = p_workspace_id and c.window_mode = 'windowed'
	and autopost.opens_at(c.window_mode, c.timezone, c.posting_window, b.began_at) > b.began_at
	and autopost.opens_at(c.window_mode, c.timezone, c.posting_window,
		b.began_at - interval '1 second') > b.began_at - interval '1 second';
end
$$;

create or replace function autopost.verify_i20(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I20. After an unknown outcome under 'reconcile' one call is allowed,
--          and one more per manual requeue; under 'hold' only after a decision of an operator. A
--          lease that expired after the start of a call is an unknown outcome, except if the
--          platform can resume it.
begin
	return query
	select jsonb_build_object('what', 'sent again', 'delivery_id', s.delivery_id, 'ts', s.ts, 'attempt', s.attempt,
		'unknown_outcomes', u.n, 'policy', l.policy, 'put_back_at', u.at_requeue)
	from autopost.events s
	cross join lateral (
		select max(e.ts) filter (where e.action = 'manual_requeue') as requeued_at from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id = s.delivery_id and e.ts < s.ts) r
	cross join lateral (
		select count(*) as n, count(*) filter (where e.ts < r.requeued_at) as at_requeue, max(e.ts) as latest
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id = s.delivery_id and e.ts < s.ts
			and e.action = 'unknown_outcome') u
	join lateral (
		select e.meta ->> 'policy' as policy from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id = s.delivery_id and e.ts = u.latest
			and e.action = 'unknown_outcome' limit 1) l on true
	where s.workspace_id = p_workspace_id and s.action = 'send_attempt' and s.delivery_id in (
		select d.delivery_id from autopost.events d where d.workspace_id = p_workspace_id
			and d.action = 'unknown_outcome')
	and case l.policy
		when 'reconcile' then u.n > greatest(1, u.at_requeue + 1)
		when 'hold' then not exists (
			select 1 from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = s.delivery_id and e.ts between u.latest and s.ts
			and e.action in ('unknown_resolved', 'manual_requeue')) end
	union all
	select jsonb_build_object('what', 'not counted', 'delivery_id', d.delivery_id, 'unknown_outcomes',
		d.unknown_outcomes,
		'events', coalesce(t.n, 0))
	from autopost.deliveries d
	left join (
		select e.delivery_id, count(*) as n from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'unknown_outcome'
		group by e.delivery_id) t on t.delivery_id = d.delivery_id
	where d.workspace_id = p_workspace_id and d.created_at >= (select autopost.verify_kept_since(p_workspace_id))
	and d.unknown_outcomes <> coalesce(t.n, 0)
	union all
	select jsonb_build_object('what', 'taken for a definite failure', 'delivery_id', x.delivery_id, 'ts', x.ts,
		'attempt',
		x.attempt)
	from autopost.events x
	join autopost.events s on s.workspace_id = p_workspace_id and s.delivery_id = x.delivery_id
		and s.action = 'send_attempt' and s.attempt = x.attempt
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = x.channel_id
	join autopost.platforms f on f.platform = c.platform and not f.resumes
	where x.workspace_id = p_workspace_id and x.action = 'sending_lease_expired'
	and not exists (
		select 1 from autopost.events u
		where u.workspace_id = p_workspace_id and u.delivery_id = x.delivery_id and u.action = 'unknown_outcome'
			and u.attempt = x.attempt);
end
$$;

create or replace function autopost.verify_i21(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I21. A sent post was called in that attempt, or in an earlier one
--          that an operator confirmed; no call follows the end. Rows inserted by hand as sent have
--          no run.
begin
	return query
	select jsonb_build_object('what', 'sent without a call', 'delivery_id', d.delivery_id, 'attempt', d.attempt,
		'sent_at',
		d.sent_at)
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.status = 'sent' and d.ingest_run_id is not null
	and d.created_at >= (select autopost.verify_kept_since(p_workspace_id))
	and not exists (
		select 1 from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id and e.action = 'send_attempt'
		and (e.attempt = d.attempt or exists (
			select 1 from autopost.events u
			where u.workspace_id = p_workspace_id and u.delivery_id = d.delivery_id and u.action = 'unknown_resolved'
				and u.attempt >= e.attempt)))
	union all
	select jsonb_build_object('what', 'called after the end', 'delivery_id', d.delivery_id, 'status', d.status,
		'finished_at', d.finished_at, 'ts', e.ts)
	from autopost.deliveries d
	join autopost.events e on e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id
		and e.action = 'send_attempt' and e.ts > d.finished_at
	where d.workspace_id = p_workspace_id and d.status in ('sent', 'failed_permanent', 'dead');
end
$$;

create or replace function autopost.verify_i22(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I22. The commit acknowledges the last step. Posts that an operator
--          confirmed may lack steps. Messages are acknowledged in their order, each with its own id. Only a
--          sent post may lose its first comment, with an event.
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'steps', d.render_meta -> 'steps', 'progress',
		d.render_meta -> 'series_progress')
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.status = 'sent'
		and jsonb_array_length(coalesce(d.render_meta -> 'steps', '[]')) > 1
	and exists (
		select 1 from jsonb_array_elements(d.render_meta -> 'steps') with ordinality s (step, n)
		where s.n < jsonb_array_length(d.render_meta -> 'steps')
		and not coalesce(d.render_meta -> 'series_progress' -> 'steps' ? (s.step ->> 'step'), false))
	and not exists (
		select 1 from autopost.events u
		where u.workspace_id = p_workspace_id and u.delivery_id = d.delivery_id and u.action = 'unknown_resolved')
	union all
	select jsonb_build_object('delivery_id', d.delivery_id, 'sent_items',
		d.render_meta -> 'series_progress' -> 'sent_items')
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.render_meta ? 'series_progress'
	and (select count(*) > count(distinct i.value)
		from jsonb_array_elements(coalesce(d.render_meta -> 'series_progress' -> 'sent_items', '[]')) i)
	union all
	select jsonb_build_object('what', 'order or ids', 'delivery_id', d.delivery_id, 'steps', d.render_meta -> 'steps',
		'progress', d.render_meta -> 'series_progress')
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.render_meta ? 'series_progress'
	and (exists (
		select 1 from (
			select d.render_meta -> 'series_progress' -> 'steps' ? (s.step ->> 'step') as done,
				lag(d.render_meta -> 'series_progress' -> 'steps' ? (s.step ->> 'step')) over (order by s.n) as before
			from jsonb_array_elements(d.render_meta -> 'steps') with ordinality s (step, n)
			where coalesce(s.step -> 'aside', 'false') = 'false') o
		where o.done and not o.before)
		or (select count(*) > count(distinct i.value)
			from jsonb_array_elements(coalesce(d.render_meta -> 'series_progress' -> 'provider_message_ids', '[]')) i))
	and not exists (
		select 1 from autopost.events u
		where u.workspace_id = p_workspace_id and u.delivery_id = d.delivery_id and u.action = 'unknown_resolved')
	union all
	select jsonb_build_object('what', 'first comment', 'delivery_id', d.delivery_id, 'status', d.status,
		'comment_failed',
		d.render_meta -> 'comment_failed')
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.render_meta ? 'comment_failed'
	and (d.status <> 'sent' or d.render_meta @? '$.steps[*] ? (@.comment == true)'
		or d.created_at >= (select autopost.verify_kept_since(p_workspace_id)) and not exists (
			select 1 from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id and e.action = 'comment_failed'));
end
$$;
