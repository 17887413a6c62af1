-- Types, bodies and ids of result webhooks come from the events, so that each repetition is equal.

create or replace function autopost.result_type(p_event autopost.events) returns text
language sql immutable parallel safe
as $$
-- Purpose: the public name of an event; null if it is not reported.
select case p_event.action
	when 'enqueue' then case when p_event.meta -> 'enqueued' = '0'
		and p_event.meta -> 'deduped' <> '0' then 'post.duplicate' else 'post.accepted' end
	when 'ingress_dedup_dropped' then 'post.duplicate'
	when 'submission_failed' then 'submission.failed'
	when 'submission_pending' then 'submission.pending'
	when 'submission_approved' then 'submission.approved'
	when 'submission_rejected' then 'submission.rejected'
	when 'submission_expired' then 'submission.expired'
	when 'dedup_suppressed' then 'delivery.duplicate'
	when 'sent' then 'delivery.sent'
	when 'retry_scheduled' then 'delivery.retry'
	when 'comment_failed' then 'delivery.comment_failed'
	when 'validation_failed' then 'delivery.failed_permanent'
	when 'failed_permanent' then 'delivery.failed_permanent'
	when 'dead_letter' then 'delivery.dead'
	when 'manual_skip' then 'delivery.dead'
	when 'unknown_outcome' then 'delivery.unknown'
	when 'manual_requeue' then 'delivery.requeued'
	when 'rescheduled' then 'delivery.rescheduled'
	when 'channel_paused' then 'channel.paused'
	when 'channel_disabled' then 'channel.disabled'
	when 'channel_enabled' then 'channel.resumed'
	when 'auth_lost' then 'credential.lost'
	when 'auth_expiring' then 'credential.expiring'
	end
$$;

create or replace function autopost.events_to_send(p_workspace_id text, p_at timestamptz, p_id uuid, p_most int)
	returns autopost.events[]
language plpgsql stable set enable_seqscan = off set enable_sort = off
as $$
-- Purpose: the next reported events after the event p_id of p_at, at most p_most, in the order of
--          their key. Sequential scans and sorts are off: with old statistics the planner takes
--          today's partition for empty and would read and sort all of it each time.
-- Reads:   events.
begin
	return array(
		select row(e.*)::autopost.events from autopost.events e
		where e.workspace_id = p_workspace_id and e.ts >= p_at and (e.ts, e.id) > (p_at, p_id)
		and autopost.result_type(row(e.*)::autopost.events) is not null
		order by e.ts, e.id
		limit p_most);
end
$$;

create or replace function autopost.post_url(p_platform text, p_target_id text, p_provider_message_id text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the public address of the first part of a sent post; null if unknown.
select case
	when p_platform = 'telegram' and p_target_id ~ '^@' and p_provider_message_id ~ '^[0-9]'
		then 'https://t.me/' || substr(split_part(p_target_id, ':', 1), 2) || '/'
	when p_platform = 'x' then 'https://x.com/i/status/'
	when p_platform = 'youtube' then 'https://www.youtube.com/watch?v=' end || substring(p_provider_message_id
		from '^[A-Za-z0-9_-]+')
$$;

create or replace function autopost.result_body(p_type text, p_at timestamptz, p_data jsonb) returns text
language sql stable parallel safe
as $$
-- Purpose: the body of a call, in the form that Standard Webhooks recommends.
select jsonb_build_object('type', p_type, 'timestamp', autopost.utc(p_at), 'data', jsonb_strip_nulls(p_data))::text
$$;

create or replace function autopost.result_data(p_event autopost.events, p_type text, p_channel autopost.channels)
	returns jsonb
language sql stable
as $$
-- Purpose: ids, target, result and error of an event, without the text of the post. Of a platform's
--          answer it has only the redacted error. It has no sub-select: the planner can inline it,
--          which avoids an executor for each event.
select jsonb_build_object('workspace_id', p_event.workspace_id, 'message_id', p_event.message_id, 'delivery_id',
	p_event.delivery_id,
	'channel_id', p_event.channel_id, 'platform', p_channel.platform, 'trace_id', p_event.meta -> 'trace_id',
	'attempt', nullif(p_event.attempt, 0),
	'provider_message_id', case when p_event.action = 'sent' then p_event.meta -> 'provider_message_id' end,
	'url', case when p_event.action = 'sent' then autopost.post_url(p_channel.platform, p_channel.target_id,
		p_event.meta ->> 'provider_message_id') end,
	'next_retry_at', case when p_type = 'delivery.retry'
		then autopost.utc((p_event.meta ->> 'next_retry_at')::timestamptz) end,
	'scheduled_for', case when p_event.action = 'rescheduled'
		then autopost.utc((p_event.meta ->> 'scheduled_for')::timestamptz) end,
	'replaced_by', case when p_event.action = 'manual_skip' then p_event.meta -> 'replaced_by' end,
	'paused_until', case when p_type = 'channel.paused' then autopost.utc((p_event.meta ->> 'until')::timestamptz) end,
	'auth_ref', case when p_type like 'credential.%' then p_event.meta -> 'auth_ref' end,
	'valid_until', case when p_type = 'credential.expiring' then p_event.meta -> 'valid_until' end,
	'submission_id', case when p_type like 'submission.%' then p_event.meta -> 'submission_id' end,
	'counts', case when p_event.action = 'enqueue' then jsonb_build_object('enqueued', p_event.meta -> 'enqueued',
		'deduped', p_event.meta -> 'deduped',
		'invalid', p_event.meta -> 'invalid', 'skipped', p_event.meta -> 'skipped') end,
	'error', case
		when p_event.action = 'manual_skip' then jsonb_build_object('code', 'manual_skip', 'message',
			p_event.meta ->> 'reason')
		when p_event.error is not null then jsonb_build_object('category', p_event.error -> 'category', 'code',
			p_event.error -> 'code', 'message', p_event.error -> 'message') end)
$$;

create or replace function autopost.completed_posts(p_workspace_id text, p_events autopost.events[],
	p_webhook_ids text[])
returns table (event_id uuid, finished_at timestamptz, body text)
language plpgsql stable
as $$
-- Purpose: the posts that these events completed and that at least one of these webhooks does not
--          have yet. A post is completed when none of its deliveries is open. The event id is made
--          of the post, so that it is reported once. Open deliveries are found by content among the
--          open ones, not among the ended ones.
-- Reads:   messages, deliveries, fanout_jobs, webhook_sends.
begin
	return query
	select p.event_id, f.finished_at,
		autopost.result_body('post.completed', f.finished_at,
			jsonb_build_object('workspace_id', p_workspace_id, 'message_id', p.message_id, 'trace_id', p.trace_id,
			'counts', jsonb_build_object('sent', f.sent, 'failed_permanent', f.failed, 'dead', f.dead)))
	from (
		select e.event_id, e.message_id, e.trace_id
		from (
			select distinct md5('post.completed ' || x.message_id || (x.meta ->> 'trace_id'))::uuid as event_id,
				x.message_id, x.meta ->> 'trace_id' as trace_id
			from unnest(p_events) x
			where x.action in ('enqueue', 'sent', 'failed_permanent', 'validation_failed', 'dead_letter', 'manual_skip')
				and x.message_id is not null) e
		where exists (
			select 1 from unnest(p_webhook_ids) w (id)
			where e.event_id is distinct from (
				-- ordered, so that the planner uses the key; it would read all of
				-- webhook_sends_told
				select s.event_id from autopost.webhook_sends s
				where s.workspace_id = p_workspace_id and s.webhook_id = w.id and s.event_id >= e.event_id
				order by s.event_id limit 1))
		and not exists (
			select 1 from autopost.fanout_jobs j
			where j.workspace_id = p_workspace_id and j.message_id = e.message_id and j.status = 'running')
		and not exists (
			select 1 from autopost.messages m
			cross join lateral (
				select d.delivery_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.content_hash = m.content_hash
					and d.hash_version = m.hash_version
				and d.trace_id::text = e.trace_id and d.phase in ('active', 'claimed', 'retry') limit 1) d
			where m.workspace_id = p_workspace_id and m.message_id = e.message_id
			offset 0)
		offset 0) p
	cross join lateral (
		select max(d.finished_at) as finished_at, count(*) filter (where d.status = 'sent') as sent,
			count(*) filter (where d.status = 'failed_permanent') as failed,
				count(*) filter (where d.status = 'dead') as dead
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p.message_id and d.trace_id::text = p.trace_id) f
	where f.finished_at is not null;
end
$$;

create or replace function autopost.is_type_wanted(p_type text, p_wanted text[]) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a list of names includes this one: "delivery.sent", "delivery.*" for a family,
--          or "*" for all.
select exists (select 1 from unnest(p_wanted) w (name)
	where w.name = p_type or (w.name like '%*' and starts_with(p_type, rtrim(w.name, '*'))))
$$;

create or replace function autopost.result_types() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: all event types that can be reported.
select '{post.accepted,post.duplicate,post.completed,submission.failed,submission.pending,submission.approved,submission.rejected,submission.expired,delivery.sent,delivery.retry,delivery.duplicate,delivery.comment_failed,delivery.failed_permanent,delivery.dead,delivery.unknown,delivery.requeued,delivery.rescheduled,channel.paused,channel.resumed,channel.disabled,credential.lost,credential.expiring}'::text[]
$$;
