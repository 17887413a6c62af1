-- Deliveries and their events. Each function returns the offending rows.

create or replace function autopost.verify_kept_since(p_workspace_id text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the time since which all events are stored. Retention drops whole days; the first events
--          of older deliveries may be missing.
begin
	return (
		select greatest(date_trunc('day', min(e.ts), 'UTC'),
			date_trunc('day', autopost.now_ts() - autopost.setting_interval('event_retention_days'), 'UTC'))
		from autopost.events e
		where e.workspace_id = p_workspace_id);
end
$$;

create or replace function autopost.verify_status_after(p_action text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the status after an event; null for events without a transition. send_attempt implies
--          its claim.
select case p_action
	when 'send_attempt' then 'sending'
	when 'sent' then 'sent'
	when 'retry_scheduled' then 'retry'
	when 'released' then 'retry'
	when 'manual_requeue' then 'retry'
	when 'claimed_lease_expired' then 'queued'
	when 'failed_permanent' then 'failed_permanent'
	when 'validation_failed' then 'failed_permanent'
	when 'dead_letter' then 'dead'
	when 'manual_skip' then 'dead'
	when 'dedup_suppressed' then 'deduped' end
$$;

create or replace function autopost.verify_may_follow(p_before text, p_action text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if an event may follow the status p_before ('new' at the start). A claim has no
--          event, so the end of a claim may follow a waiting status.
select case p_action
	when 'validation_failed' then p_before = 'new'
	when 'manual_requeue' then p_before in ('dead', 'failed_permanent')
	when 'send_attempt' then p_before in ('new', 'queued', 'retry')
	when 'claimed_lease_expired' then p_before in ('new', 'queued', 'retry')
	when 'manual_skip' then p_before in ('new', 'queued', 'retry')
	when 'dedup_suppressed' then p_before in ('new', 'queued', 'retry')
	else p_before in ('new', 'queued', 'retry', 'sending') end
$$;

create or replace function autopost.verify_torn(p_workspace_id text, p_found jsonb) returns boolean
language plpgsql stable
as $$
-- Purpose: true if the delivery of a finding has events from hours that the clock passed twice;
--          their order is unknown.
declare
	v_jump record;
begin
	for v_jump in
		select j.observed_at, j.jump from autopost.clock_jumps j where j.jump < interval '0'
	loop
		if exists (
			select 1 from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = (p_found ->> 'delivery_id')::uuid
			and e.ts between v_jump.observed_at and v_jump.observed_at - v_jump.jump) then
			return true;
		end if;
	end loop;
	return false;
end
$$;

create or replace function autopost.verify_i01(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I1. A delivery without a run was inserted by hand as sent and has no
--          history.
begin
	return query
	with logged as (
		select e.delivery_id, e.ts, e.action, autopost.verify_status_after(e.action) as after,
			lag(autopost.verify_status_after(e.action)) over (partition by e.delivery_id order by e.ts, e.id) as before,
			row_number() over (partition by e.delivery_id order by e.ts desc, e.id desc) as from_end
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id is not null
			and autopost.verify_status_after(e.action) is not null
	)
	select jsonb_build_object('delivery_id', d.delivery_id, 'before', t.before, 'event', t.action, 'ts', t.ts)
	from autopost.deliveries d
	join logged t on t.delivery_id = d.delivery_id
	where d.workspace_id = p_workspace_id
	and not autopost.verify_may_follow(coalesce(t.before, case
		when d.created_at >= (select autopost.verify_kept_since(p_workspace_id)) then 'new' end), t.action)
	union all
	select jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'last_event', t.action)
	from autopost.deliveries d
	left join logged t on t.delivery_id = d.delivery_id and t.from_end = 1
	cross join lateral (select coalesce(t.after, case
		when d.created_at >= (select autopost.verify_kept_since(p_workspace_id)) then 'new' end) as after) l
	where d.workspace_id = p_workspace_id and d.ingest_run_id is not null
	and not case d.status
		when 'queued' then l.after in ('new', 'queued')
		when 'deduped' then l.after in ('new', 'deduped')
		when 'claimed' then l.after in ('new', 'queued', 'retry')
		when 'sending' then l.after in ('new', 'queued', 'retry', 'sending')
		else l.after = d.status end;
end
$$;

create or replace function autopost.verify_i02(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I2. A delivery in flight has the mark of its start exactly if the
--          event of the start exists.
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'attempt', d.attempt, 'send_attempts', s.attempts)
	from (
		select e.delivery_id, count(*) as n, count(distinct e.attempt) as apart,
			jsonb_agg(e.attempt order by e.ts) as attempts
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'send_attempt'
		group by e.delivery_id
	) s
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = s.delivery_id
	where s.n > d.attempt or s.n > s.apart
	union all
	select jsonb_build_object('delivery_id', d.delivery_id, 'attempt', d.attempt, 'call_begun_at', d.call_begun_at,
		'event_at', b.ts)
	from autopost.deliveries d
	left join lateral (
		select e.ts from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id and e.action = 'send_attempt'
			and e.attempt = d.attempt
		order by e.ts limit 1) b on true
	where d.workspace_id = p_workspace_id and d.phase in ('active', 'retry') and d.status = 'sending'
	and d.call_begun_at is distinct from b.ts;
end
$$;

create or replace function autopost.verify_i24(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I24. Counts, so that lost and doubled events are found. One event
--          ended each finished claim; each end that was not undone by an operator is final; one
--          event granted each attempt; each post has one enqueue event, or its fan-out job.
begin
	return query
	with logged as (
		select e.delivery_id,
			count(distinct e.attempt) filter (where e.attempt > 0
				and e.action in ('retry_scheduled', 'released', 'claimed_lease_expired', 'sent', 'failed_permanent',
					'dead_letter')) as claims_ended,
			count(*) filter (where e.action in ('retry_scheduled', 'released')) as returns,
			count(distinct e.attempt) filter (where e.action in ('retry_scheduled', 'released')) as returns_apart,
			count(*) filter (where e.action in ('sent', 'failed_permanent', 'validation_failed', 'dead_letter',
				'manual_skip')) as ends,
			count(*) filter (where e.action = 'manual_requeue') as requeues,
			count(*) filter (where e.action in ('manual_requeue', 'released') or e.meta -> 'granted' = 'true') as grants
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.delivery_id is not null
		group by e.delivery_id
	),
	posts as (
		select e.message_id, e.meta ->> 'trace_id' as trace_id, count(*) as n from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'enqueue'
		group by e.message_id, e.meta ->> 'trace_id'
		union all
		select j.message_id, j.trace_id::text, 1 from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.status = 'running'
	)
	select jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'attempt', d.attempt,
		'granted_attempts',
		d.granted_attempts,
		'recorded', to_jsonb(t) - 'delivery_id', 'enqueue_events', coalesce(p.n, 0))
	from autopost.deliveries d
	left join logged t on t.delivery_id = d.delivery_id
	left join posts p on p.message_id = d.message_id and p.trace_id = d.trace_id::text
	where d.workspace_id = p_workspace_id and d.ingest_run_id is not null
	and d.created_at >= (select autopost.verify_kept_since(p_workspace_id))
	and (p.n is distinct from 1
		or t.returns <> t.returns_apart
		or coalesce(t.grants, 0) <> d.granted_attempts
		or coalesce(t.ends, 0) <> coalesce(t.requeues, 0) + (d.status in ('sent', 'failed_permanent', 'dead'))::int
		or coalesce(t.claims_ended, 0) not between d.attempt - (d.status in ('claimed', 'sending'))::int
			and d.attempt - (d.status = 'sending')::int);
end
$$;

create or replace function autopost.verify_i25(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I25. Attempts never decrease and never exceed the row's. Each claim
--          leaves an event, so attempts increase by at most one per event.
begin
	return query
	select jsonb_build_object('delivery_id', s.delivery_id, 'event', s.action, 'ts', s.ts, 'event_attempt', s.attempt,
		'before', s.before, 'attempt', s.row_attempt)
	from (
		select e.delivery_id, e.action, e.ts, e.attempt, d.attempt as row_attempt,
			coalesce(lag(e.attempt) over (partition by e.delivery_id order by e.ts, e.id),
				case when d.created_at >= (select autopost.verify_kept_since(p_workspace_id)) then 0 end) as before
		from autopost.events e
		join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = e.delivery_id
		where e.workspace_id = p_workspace_id and d.ingest_run_id is not null
	) s
	where s.attempt > s.row_attempt or s.attempt not between s.before and s.before + 1;
end
$$;

create or replace function autopost.verify_i27(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I27. The channel_paused event of a permanent failure has the length
--          of the streak. A sent post or an enabling ends it. A row set to 0 by hand starts a new
--          streak without an event.
begin
	return query
	with logged as (
		select e.channel_id, e.ts, e.action, (e.meta ->> 'streak')::int as streak,
			lag(case e.action when 'channel_paused' then (e.meta ->> 'streak')::int
				else 0 end) over (partition by e.channel_id order by e.ts, e.id) as before,
			row_number() over (partition by e.channel_id order by e.ts desc, e.id desc) as from_end
		from autopost.events e
		where e.workspace_id = p_workspace_id
		and (e.action in ('sent', 'channel_enabled') or (e.action = 'channel_paused' and e.meta ? 'streak'))
	)
	select jsonb_build_object('channel_id', t.channel_id, 'ts', t.ts, 'streak', t.streak, 'before', t.before)
	from logged t
	where t.action = 'channel_paused' and (t.streak < 1 or (t.streak > 1 and t.streak <> t.before + 1))
	union all
	select jsonb_build_object('channel_id', c.channel_id, 'error_streak', c.error_streak, 'last_event', t.action,
		'streak',
		t.streak)
	from autopost.channels c
	left join logged t on t.channel_id = c.channel_id and t.from_end = 1
	where c.workspace_id = p_workspace_id and c.error_streak <> 0
	and c.error_streak <> coalesce(t.streak, case when t.action is not null
		or c.created_at >= (select autopost.verify_kept_since(p_workspace_id)) then 0 end)
	union all
	select jsonb_build_object('channel_id', e.channel_id, 'delivery_id', e.delivery_id, 'ts', e.ts, 'what',
		'a failure of the channel that did not count')
	from autopost.events e
	where e.workspace_id = p_workspace_id and e.action = 'failed_permanent'
	and e.error ->> 'scope' = 'channel' and e.error ->> 'code' not in ('unknown_outcome', 'auth_lost')
	and not exists (
		select 1 from autopost.events p
		where p.workspace_id = p_workspace_id and p.action = 'channel_paused'
			and p.meta ->> 'delivery_id' = e.delivery_id::text);
end
$$;
