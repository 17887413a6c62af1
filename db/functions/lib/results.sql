-- What result webhooks are told: names, bodies and ids are made of the events, so that they are the same in every repetition.

create or replace function autopost.result_type(p_event autopost.events) returns text
language sql immutable parallel safe
as $$
-- The public name of what happened; null for what is nobody's business outside.
select case p_event.action
	when 'enqueue' then case when p_event.meta -> 'enqueued' = '0' and p_event.meta -> 'deduped' <> '0' then 'post.duplicate' else 'post.accepted' end
	when 'ingress_dedup_dropped' then 'post.duplicate'
	when 'submission_failed' then 'submission.failed'
	when 'dedup_suppressed' then 'delivery.duplicate'
	when 'sent' then 'delivery.sent'
	when 'retry_scheduled' then 'delivery.retry'
	when 'validation_failed' then 'delivery.failed_permanent'
	when 'failed_permanent' then 'delivery.failed_permanent'
	when 'dead_letter' then 'delivery.dead'
	when 'manual_skip' then 'delivery.dead'
	when 'unknown_outcome' then 'delivery.unknown'
	when 'manual_requeue' then 'delivery.requeued'
	when 'channel_paused' then 'channel.paused'
	when 'channel_disabled' then 'channel.disabled'
	when 'channel_enabled' then 'channel.resumed'
	when 'auth_lost' then 'credential.lost'
	when 'auth_expiring' then 'credential.expiring'
	end
$$;

create or replace function autopost.utc(p_at timestamptz) returns text
language sql immutable parallel safe
as $$
select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') where isfinite(p_at)
$$;

create or replace function autopost.post_url(p_platform text, p_target_id text, p_provider_message_id text) returns text
language sql immutable parallel safe
as $$
-- Where anybody can look at a sent post, its first part; null where that is not known.
select case
	when p_platform = 'telegram' and p_target_id ~ '^@' then format('https://t.me/%s/%s', substr(split_part(p_target_id, ':', 1), 2), i.id)
	when p_platform = 'x' then 'https://x.com/i/status/' || i.id
	when p_platform = 'youtube' then 'https://www.youtube.com/watch?v=' || i.id end
from substring(p_provider_message_id from '^[A-Za-z0-9_-]+') i (id)
where i.id is not null
$$;

create or replace function autopost.result_body(p_type text, p_at timestamptz, p_data jsonb) returns text
language sql immutable parallel safe
as $$
-- What is sent, in the form that Standard Webhooks recommends.
select jsonb_build_object('type', p_type, 'timestamp', autopost.utc(p_at), 'data', jsonb_strip_nulls(p_data))::text
$$;

create or replace function autopost.result_data(p_event autopost.events, p_type text, p_channel autopost.channels) returns jsonb
language sql stable
as $$
-- Ids, where it went, what came of it and why not: no text of a post, and no more of a platform's answer than its error, which is redacted.
select jsonb_build_object('workspace_id', p_event.workspace_id, 'message_id', p_event.message_id, 'delivery_id', p_event.delivery_id,
	'channel_id', p_event.channel_id, 'platform', p_channel.platform, 'trace_id', p_event.meta -> 'trace_id',
	'attempt', nullif(p_event.attempt, 0),
	'provider_message_id', m.id, 'url', autopost.post_url(p_channel.platform, p_channel.target_id, m.id),
	'next_retry_at', case when p_type = 'delivery.retry' then autopost.utc((p_event.meta ->> 'next_retry_at')::timestamptz) end,
	'paused_until', case when p_type = 'channel.paused' then autopost.utc((p_event.meta ->> 'until')::timestamptz) end,
	'auth_ref', case when p_type like 'credential.%' then p_event.meta -> 'auth_ref' end,
	'valid_until', case when p_type = 'credential.expiring' then p_event.meta -> 'valid_until' end,
	'submission_id', case when p_type = 'submission.failed' then p_event.meta -> 'submission_id' end,
	'counts', case when p_event.action = 'enqueue' then jsonb_build_object('enqueued', p_event.meta -> 'enqueued', 'deduped', p_event.meta -> 'deduped',
		'invalid', p_event.meta -> 'invalid', 'skipped', p_event.meta -> 'skipped') end,
	'error', case
		when p_event.action = 'manual_skip' then jsonb_build_object('code', 'manual_skip', 'message', p_event.meta ->> 'reason')
		when p_event.error is not null then jsonb_build_object('category', p_event.error -> 'category', 'code', p_event.error -> 'code', 'message', p_event.error -> 'message') end)
from (select case when p_event.action = 'sent' then p_event.meta ->> 'provider_message_id' end) m (id)
$$;

create or replace function autopost.results_of(p_workspace_id text, p_events autopost.events[], p_completed boolean)
returns table (event_id uuid, event_type text, event_at timestamptz, channel_id text, tags text[], body text)
language plpgsql stable
as $$
-- What these events are to the outside, and with p_completed which posts they brought to their end: once nothing of a post is under way any
-- more, under an id that is made of the post, so that it is told once.
-- Reads: channels, deliveries, fanout_jobs.
begin
	return query
	select e.id, t.type, e.ts, e.channel_id, c.tags, autopost.result_body(t.type, e.ts, autopost.result_data(e, t.type, c))
	from unnest(p_events) e
	cross join lateral (select autopost.result_type(e) as type) t
	left join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = e.channel_id
	where t.type is not null;
	if not p_completed then
		return;
	end if;
	return query
	select md5('post.completed ' || p.message_id || p.trace_id)::uuid, 'post.completed'::text, f.finished_at, null::text, null::text[],
		autopost.result_body('post.completed', f.finished_at, jsonb_build_object('workspace_id', p_workspace_id, 'message_id', p.message_id, 'trace_id', p.trace_id,
			'counts', jsonb_build_object('sent', f.sent, 'failed_permanent', f.failed, 'dead', f.dead)))
	from (
		select distinct e.message_id, e.meta ->> 'trace_id' as trace_id from unnest(p_events) e
		where e.action in ('enqueue', 'sent', 'failed_permanent', 'validation_failed', 'dead_letter', 'manual_skip') and e.message_id is not null) p
	cross join lateral (
		select max(d.finished_at) as finished_at, count(*) filter (where d.status = 'sent') as sent,
			count(*) filter (where d.status = 'failed_permanent') as failed, count(*) filter (where d.status = 'dead') as dead
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p.message_id and d.trace_id::text = p.trace_id) f
	where f.finished_at is not null
	and not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p.message_id and d.trace_id::text = p.trace_id
		and d.status in ('queued', 'claimed', 'sending', 'retry'))
	and not exists (
		select 1 from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.message_id = p.message_id and j.status = 'running');
end
$$;

create or replace function autopost.is_type_wanted(p_type text, p_wanted text[]) returns boolean
language sql immutable parallel safe
as $$
-- Whether a list of names has this one: "delivery.sent", all of a family as "delivery.*", or all as "*".
select exists (select 1 from unnest(p_wanted) w (name)
	where w.name = p_type or (w.name like '%*' and starts_with(p_type, rtrim(w.name, '*'))))
$$;

create or replace function autopost.is_result_wanted(p_webhook autopost.result_webhooks, p_type text, p_channel_id text, p_tags text[]) returns boolean
language sql immutable parallel safe
as $$
-- Whether a webhook is to be told of something. What is of no channel does not ask for the channels.
select autopost.is_type_wanted(p_type, p_webhook.event_types)
	and (p_channel_id is null or (
		(p_webhook.channel_ids = '{}' or p_channel_id = any (p_webhook.channel_ids)) and (p_webhook.tags = '{}' or p_tags && p_webhook.tags)))
$$;

create or replace function autopost.result_types() returns text[]
language sql immutable parallel safe
as $$
-- All that can be told.
select '{post.accepted,post.duplicate,post.completed,submission.failed,delivery.sent,delivery.retry,delivery.duplicate,delivery.failed_permanent,delivery.dead,delivery.unknown,delivery.requeued,channel.paused,channel.resumed,channel.disabled,credential.lost,credential.expiring}'::text[]
$$;
