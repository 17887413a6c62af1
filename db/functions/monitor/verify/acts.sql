-- Changes of sent posts. Each function returns the offending rows.

create or replace function autopost.verify_i41(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I41. next_at is the lease of a post change in flight. The finding
--          has no token.
begin
	return query
	select jsonb_build_object('act_id', a.act_id, 'delivery_id', a.delivery_id, 'status', a.status, 'has_token',
		a.claim_token is not null,
		'claimed_by', a.claimed_by, 'send_at', a.send_at, 'next_at', a.next_at, 'finished_at', a.finished_at)
	from autopost.post_acts a
	where a.workspace_id = p_workspace_id
	and ((a.status = 'sending') <> (a.claim_token is not null)
		or (a.status = 'sending') <> (a.claimed_by is not null)
		or a.status = 'sending' and not isfinite(a.next_at)
		or a.status <> 'sending' and a.send_at is not null
		or (a.status in ('done', 'failed', 'void')) <> (a.finished_at is not null));
end
$$;

create or replace function autopost.verify_i42(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I42. As for deliveries: one event ended each finished call; one
--          event of its own kind records each end; each post change was requested once, except the
--          removal that comes with a post. No event names a post change that does not exist.
begin
	return query
	with logged as (
		select e.delivery_id, e.meta ->> 'act_id' as act_id,
			count(*) filter (where e.action = 'act_requested') as requests,
			count(*) filter (where e.action in ('act_done', 'act_retry_scheduled', 'act_failed')) as calls,
			count(distinct e.meta ->> 'call') filter (where e.action in ('act_done', 'act_retry_scheduled',
				'act_failed'))
				as calls_apart,
			array_agg(e.action::text) filter (where e.action in ('act_done', 'act_failed', 'act_void')) as ends
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.action in ('act_requested', 'act_done', 'act_retry_scheduled',
			'act_failed', 'act_void')
		group by e.delivery_id, e.meta ->> 'act_id'
	)
	select jsonb_build_object('act_id', a.act_id, 'delivery_id', a.delivery_id, 'kind', a.kind, 'status', a.status,
		'attempt', a.attempt, 'recorded', to_jsonb(t) - 'act_id' - 'delivery_id')
	from autopost.post_acts a
	left join logged t on t.act_id = a.act_id::text
	where a.workspace_id = p_workspace_id and a.created_at >= (select autopost.verify_kept_since(p_workspace_id))
	and (coalesce(t.calls, 0) <> coalesce(t.calls_apart, 0)
		or coalesce(t.calls, 0) <> a.attempt - (a.status = 'sending')::int
		or t.ends is distinct from case when a.status in ('done', 'failed', 'void') then array['act_' || a.status] end
		or coalesce(t.requests, 0) <> (not autopost.came_with_its_post(row(a.*)::autopost.post_acts))::int)
	union all
	select jsonb_build_object('act_id', t.act_id, 'delivery_id', t.delivery_id, 'what', 'act unknown')
	from logged t
	left join autopost.post_acts a on a.workspace_id = p_workspace_id and a.act_id::text = t.act_id
		and a.delivery_id = t.delivery_id
	where a.act_id is null;
end
$$;

create or replace function autopost.verify_i43(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I43. An unsent post has no calls and no requests, except the removal
--          that comes with it.
begin
	return query
	select jsonb_build_object('act_id', a.act_id, 'delivery_id', a.delivery_id, 'kind', a.kind, 'status', a.status,
		'attempt', a.attempt,
		'delivery_status', d.status, 'started_at', a.started_at, 'sent', d.finished_at)
	from autopost.post_acts a
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = a.delivery_id
	where a.workspace_id = p_workspace_id
	and (d.message_id is distinct from a.message_id or d.channel_id is distinct from a.channel_id
		or d.status <> 'sent' and (a.attempt > 0 or a.started_at is not null or a.status in ('sending', 'done')
			or not autopost.came_with_its_post(row(a.*)::autopost.post_acts))
		or a.started_at < d.finished_at);
end
$$;

create or replace function autopost.verify_i44(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I44. Finds two live claims, a call after the removal, and a call
--          before an earlier-due change ended. That change must be two minutes older: a request for
--          many posts takes time to commit. A removal waits only for a change in flight.
begin
	return query
	select jsonb_build_object('act_id', min(a.act_id::text), 'delivery_id', a.delivery_id, 'what', 'at once', 'claims',
		count(*))
	from autopost.post_acts a
	where a.workspace_id = p_workspace_id and a.status = 'sending' and a.next_at > autopost.now_ts()
	group by a.delivery_id
	having count(*) > 1
	union all
	select jsonb_build_object('act_id', a.act_id, 'delivery_id', a.delivery_id, 'kind', a.kind,
		'what', case when o.kind = 'delete' and o.status = 'done' and a.started_at > o.finished_at
			then 'after the removal'
			else 'out of order' end,
		'started_at', a.started_at, 'other', o.act_id, 'other_finished_at', o.finished_at)
	from autopost.post_acts a
	join autopost.post_acts o on o.workspace_id = p_workspace_id and o.delivery_id = a.delivery_id
		and o.act_id <> a.act_id
	where a.workspace_id = p_workspace_id and a.started_at is not null
	and (o.kind = 'delete' and o.status = 'done' and a.started_at > o.finished_at
		or a.kind <> 'delete' and (o.due_at, o.act_id) < (a.due_at, a.act_id)
			and o.created_at < a.started_at - autopost.verify_patience()
				and coalesce(o.finished_at, 'infinity') > a.started_at);
end
$$;

create or replace function autopost.verify_i45(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I45. As for deliveries: a claim cannot know the next error, so the
--          largest number of any policy of the platform counts.
begin
	return query
	with policies as materialized (
		select r.platform, r.max_attempts from autopost.policies_of(p_workspace_id) r)
	select jsonb_build_object('act_id', a.act_id, 'delivery_id', a.delivery_id, 'attempt', a.attempt, 'max_attempts',
		m.most)
	from autopost.channels c
	cross join lateral (
		select greatest(autopost.setting('max_attempts')::int, max(r.max_attempts)) as most
		from policies r where r.platform in (c.platform, '*')) m
	join autopost.post_acts a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
	where c.workspace_id = p_workspace_id
	and a.attempt > m.most
	and a.created_at >= (select s.updated_at from autopost.settings s where s.key = 'max_attempts')
	and a.created_at >= (select autopost.policies_changed_at(p_workspace_id));
end
$$;
