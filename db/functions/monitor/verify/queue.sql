-- Gates, slots and leases. Each function returns the offending rows.

create or replace function autopost.verify_patience() returns interval
language sql immutable parallel safe
as $$
-- Purpose: two periods of the monitor; its sweeps repair such rows in that time.
select interval '2 minutes'
$$;

create or replace function autopost.verify_i10(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I10. Claims before the last change of the channel's row count for
--          the counter, not for max_parallel, which may have been higher. Also finds gates whose mark
--          does not match channels_in_flight: leases of such a channel would not be recovered.
begin
	return query
	with flight as (
		select d.channel_id, count(*) as sending, count(*) filter (where d.claimed_at >= c.updated_at) as under_ceiling
		from autopost.deliveries d
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
		where d.workspace_id = p_workspace_id and d.status = 'sending'
		group by d.channel_id
	)
	select jsonb_build_object('channel_id', c.channel_id, 'sending', coalesce(f.sending, 0), 'inflight', g.inflight,
		'max_parallel', c.max_parallel)
	from autopost.channels c
	join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = c.channel_id
	left join flight f on f.channel_id = c.channel_id
	where c.workspace_id = p_workspace_id
	and (coalesce(f.sending, 0) <> g.inflight or f.under_ceiling > c.max_parallel)
	union all
	select jsonb_build_object('channel_id', g.channel_id, 'inflight', g.inflight, 'listed', g.listed)
	from autopost.channel_gates g
	left join autopost.channels_in_flight l on l.workspace_id = p_workspace_id and l.channel_id = g.channel_id
	where g.workspace_id = p_workspace_id and g.listed <> (l.channel_id is not null);
end
$$;

create or replace function autopost.left_work(p_workspace_id text, p_for interval)
	returns table (work jsonb, since timestamptz)
language plpgsql stable
as $$
-- Purpose: finds work that is due for p_for although its stage could take it: calls of result
--          webhooks that have sent nothing since then, sources, fan-out jobs, recurrences, and messages to
--          and of bots. Sources and messages of bots have ten times as long: they are taken in turn.
-- Reads:   webhook_sends, result_webhooks, pull_cursors, pull_sources, fanout_jobs, recurrences, bot_inbox, bot_outbox,
--          workspaces.
begin
	return query
	select x.work, x.since
	from (
		select jsonb_build_object('what', 'call without progress', 'webhook_id', w.webhook_id, 'event_id', s.event_id,
			'due_at',
			s.due_at), greatest(s.due_at, w.next_send_at), p_for, w.workspace_id
		from autopost.result_webhooks w
		cross join lateral (
			select s.event_id, s.due_at from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = w.webhook_id and s.status in ('pending', 'sending')
			order by s.due_at limit 1) s
		where w.workspace_id = p_workspace_id and w.enabled
		union all
		select jsonb_build_object('what', 'source without progress', 'source_id', c.source_id, 'next_poll_at',
			c.next_poll_at),
			c.next_poll_at, p_for * 10, c.workspace_id
		from autopost.pull_cursors c
		join autopost.pull_sources s on s.workspace_id = p_workspace_id and s.source_id = c.source_id and s.enabled
		where c.workspace_id = p_workspace_id
		union all
		select jsonb_build_object('what', 'fan-out without progress', 'job_id', j.job_id, 'updated_at', j.updated_at),
			greatest(j.next_attempt_at, j.updated_at), p_for, j.workspace_id
		from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.status = 'running'
		union all
		select jsonb_build_object('what', 'recurrence without progress', 'recurrence_id', r.recurrence_id, 'next_at',
			r.next_at), greatest(r.next_at, r.updated_at), p_for, r.workspace_id
		from autopost.recurrences r
		where r.workspace_id = p_workspace_id and r.enabled
		union all
		select jsonb_build_object('what', 'message to the bot without progress', 'chat_id', i.chat_id, 'next_at',
			i.next_at),
			i.next_at, p_for, i.workspace_id
		from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.status = 'received' and i.tries < 5
		union all
		select jsonb_build_object('what', 'message of the bot without progress', 'reply_id', o.reply_id, 'next_at',
			o.next_at),
			greatest(o.next_at, l.cooldown_until, l.quota_until, l.next_allowed_at, l.probe_at), p_for * 10,
				o.workspace_id
		from autopost.bot_outbox o
		left join autopost.platform_limits l on l.workspace_id = p_workspace_id and l.platform = o.provider
			and l.rate_group = autopost.bot_rate_group(p_workspace_id, o.provider, o.auth_ref)
		where o.workspace_id = p_workspace_id and o.status in ('pending', 'retry', 'sending')
		and not exists (
			select 1 from autopost.bot_outbox e
			where e.workspace_id = p_workspace_id and e.provider = o.provider and e.auth_ref = o.auth_ref
			and e.chat_id = o.chat_id and e.status in ('pending', 'sending', 'retry') and e.reply_id < o.reply_id)
	) x (work, since, patience, workspace_id)
	join autopost.workspaces w on w.workspace_id = p_workspace_id and w.status = 'active'
	where x.since <= autopost.now_ts() - x.patience;
end
$$;

create or replace function autopost.verify_i18(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I18. Finds deliveries that could start, now or at the opening of the
--          posting window, while the gate is closed, and expired leases: of deliveries, of post
--          changes and of submissions. The last two have no sweep: a later claim takes them over,
--          so they count only if a daemon ran since. So does other work that no stage takes.
declare
	v_seen_at timestamptz := (select max(r.seen_at) from autopost.dispatch_runs r); -- the last heartbeat
begin
	return query
	select jsonb_build_object('what', 'shut gate', 'channel_id', c.channel_id, 'due_at', f.due_at, 'ready_at',
		g.ready_at)
	from autopost.channels c
	join autopost.workspaces w on w.workspace_id = p_workspace_id and w.status = 'active'
	join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = c.channel_id
	cross join lateral (
		select min(d.due_at) as due_at from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending') f
	cross join lateral (select autopost.now_ts() as at) n
	where c.workspace_id = p_workspace_id
	and c.enabled and g.inflight < c.max_parallel
	and f.due_at is not null and greatest(f.due_at, c.paused_until, c.cooldown_until,
		c.credential_until) <= n.at - autopost.verify_patience()
	and g.ready_at > autopost.opens_at(c.window_mode, c.timezone, c.posting_window,
		greatest(n.at, case when c.effective_rps > 0 then c.next_allowed_at end))
	and g.ready_at > coalesce(autopost.channel_quota_until(p_workspace_id, c.channel_id, 1, n.at), '-infinity')
	union all
	select jsonb_build_object('what', 'expired lease', 'delivery_id', d.delivery_id, 'status', d.status, 'lease_until',
		coalesce(d.sending_lease_until, d.claimed_at))
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.status in ('claimed', 'sending')
	and case d.status when 'sending' then d.sending_lease_until
		else greatest(d.not_before,
			d.claimed_at + autopost.setting_interval('claimed_lease_seconds')) end
		<= autopost.now_ts() - autopost.verify_patience()
	union all
	select jsonb_build_object('what', 'expired lease', 'act_id', a.act_id, 'lease_until', a.next_at)
	from autopost.post_acts a
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = a.channel_id and c.enabled
	where a.workspace_id = p_workspace_id and a.status = 'sending'
		and v_seen_at > autopost.verify_patience()
			+ greatest(a.next_at, c.paused_until, c.cooldown_until, c.credential_until)
	union all
	select jsonb_build_object('what', 'expired lease', 'submission_id', s.submission_id, 'lease_until', s.lease_until)
	from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.status = 'fetching'
		and v_seen_at > s.lease_until + autopost.verify_patience()
	union all
	select l.work from autopost.left_work(p_workspace_id, autopost.verify_patience()) l
	where v_seen_at > l.since + autopost.verify_patience();
end
$$;

create or replace function autopost.verify_i29(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I29. The horizon is an hour, plus the largest cost of calls in all
--          slots of the channel at its rate. A gate without a rate does not limit. For quotas,
--          counts calls from events after the claims from before the last change of quota or
--          channel have ended, and finds reservations of ended claims. A quota of posts counts
--          calls that made a post or may have: one, and the others of a series as recorded.
begin
	return query
	select jsonb_build_object('channel_id', c.channel_id, 'next_allowed_at', c.next_allowed_at, 'rate_rps',
		c.effective_rps)
	from autopost.channels c
	where c.workspace_id = p_workspace_id and c.effective_rps > 0
	and c.next_allowed_at > autopost.now_ts() + interval '1 hour' + autopost.slot_step(c.effective_rps,
		11) * c.max_parallel
	union all
	select jsonb_build_object('platform', l.platform, 'rate_group', l.rate_group, 'next_allowed_at', l.next_allowed_at,
		'rate_rps', l.rate_rps)
	from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.rate_rps > 0
	and l.next_allowed_at > autopost.now_ts() + interval '1 hour' + autopost.slot_step(l.rate_rps, 11) * (
		select coalesce(sum(c.max_parallel), 1)::int from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = l.platform and c.rate_group = l.rate_group)
	union all
	select jsonb_build_object('what', 'quota overrun', 'subject', s.subject, 'window_seconds', s.window_seconds,
		'max_sends', s.max_sends,
		'delivery_id', s.delivery_id, 'began_at', s.began_at, 'first_of_them', s.earlier)
	from (
		select q.subject, q.window_seconds, q.max_sends, e.delivery_id, b.began_at,
			lag(b.began_at, q.max_sends) over (partition by q.subject, q.window_seconds order by b.began_at) as earlier
		from autopost.channels c
		cross join lateral (values ('channel:' || c.channel_id), (autopost.group_subject(c.platform, c.rate_group))) u (
			subject)
		join autopost.quotas q on q.workspace_id = p_workspace_id and q.subject = u.subject
		join autopost.events e on e.workspace_id = p_workspace_id and e.channel_id = c.channel_id
			and e.action = 'send_attempt'
			and e.ts > greatest(q.updated_at, c.updated_at) + autopost.setting_interval('sending_lease_seconds')
		cross join lateral (select greatest(e.ts, (e.meta ->> 'send_at')::timestamptz) as began_at) b
		left join autopost.quota_uses r on r.workspace_id = p_workspace_id and r.delivery_id = e.delivery_id
			and r.attempt = e.attempt and r.subject = q.subject
		cross join lateral generate_series(1, autopost.quota_weight(row(q.*)::autopost.quotas, greatest(1, r.posts)))
		where c.workspace_id = p_workspace_id
		and (q.counts = 'calls' or exists (
			select 1 from autopost.events o
			where o.workspace_id = p_workspace_id and o.delivery_id = e.delivery_id and o.attempt = e.attempt
				and (o.action = 'unknown_outcome'
					or o.action = 'sent' and o.meta #> '{raw,raw,reconciled}' is distinct from 'true')))) s
	where s.began_at < s.earlier + make_interval(secs => s.window_seconds)
	union all
	select jsonb_build_object('what', 'quota kept', 'subject', u.subject, 'delivery_id', u.delivery_id, 'attempt',
		u.attempt)
	from autopost.quota_uses u
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = u.delivery_id
	where u.workspace_id = p_workspace_id and u.used_at = 'infinity'
	and (d.status = 'sending' and d.attempt = u.attempt) is not true;
end
$$;
