-- Events of Global X with the names and statuses of the founding document.
create or replace view autopost.x_post_events_rows as
select s.workspace_id, s.submission_id as "_id", s.event_type as "eventType",
	case
		when s.event_facts ? 'backfill' then 'posted'
		when s.status in ('new', 'fetching') then case when s.moderated and s.decision is null then 'pending'
			else 'approved' end
		when s.status = 'enqueued' then case
			when d.status = 'sent' then 'posted'
			when d.status in ('failed_permanent', 'dead') then 'failed'
			when d.delivery_id is null and coalesce(s.answer -> 'deduped', '0') <> '0' then 'skipped'
			when d.delivery_id is null then 'failed'
			else 'approved' end
		else s.status end as status,
	s.event_facts ->> 'media_type' as "mediaType", s.event_facts ->> 'media_url' as "mediaUrl",
	array(select jsonb_array_elements_text(s.event_facts -> 'avatar_ids')) as "avatarIds",
	s.event_facts ->> 'encounter_id' as "encounterId", s.event_facts ->> 'template_key' as "templateKey",
	s.raw_payload ->> 'text' as "resolvedContent", s.hash, coalesce(d.attempt, s.attempt) as attempts,
	case when s.status = 'fetching' then s.next_attempt_at
		when d.status in ('queued', 'retry') then coalesce(d.next_retry_at, d.due_at) end as "nextAttemptAt",
	case
		when s.status = 'skipped' then s.last_error ->> 'code'
		when s.status = 'enqueued' and d.delivery_id is null and coalesce(s.answer -> 'deduped', '0') <> '0'
			then 'duplicate'
		when d.delivery_id is not null then coalesce(d.last_error ->> 'message', d.last_error ->> 'code')
		else coalesce(s.last_error ->> 'message', s.last_error ->> 'code') end as "lastError",
	coalesce(s.event_facts #>> '{backfill,tweet_id}', d.provider_message_id) as "tweetId",
	'https://x.com/i/status/' || substring(coalesce(s.event_facts #>> '{backfill,tweet_id}', d.provider_message_id)
		from '^[A-Za-z0-9_-]+') as "tweetUrl",
	s.event_facts -> 'meta' as meta, s.created_at as "createdAt", greatest(s.updated_at, d.updated_at) as "updatedAt",
	coalesce((s.event_facts #>> '{backfill,posted_at}')::timestamptz, d.sent_at) as "postedAt",
	case when s.decision = 'reject' then s.decision_reason end as "rejectedReason",
	s.duplicate_of as "duplicateOf", s.digest, s.event_facts ? 'backfill' as backfill
from autopost.submissions s
left join autopost.deliveries d on s.status = 'enqueued' and d.workspace_id = s.workspace_id
	and d.message_id = s.message_id and d.ingest_run_id = s.run_id
	and not exists (
		select 1 from autopost.deliveries x
		where x.workspace_id = d.workspace_id and x.message_id = d.message_id and x.ingest_run_id = d.ingest_run_id
			and x.delivery_id < d.delivery_id)
where s.kind = 'event';

create or replace view autopost.x_post_events with (security_barrier = true) as
select v.workspace_id, v."_id", v."eventType", v.status, v."mediaType", v."mediaUrl", v."avatarIds", v."encounterId",
	v."templateKey", v."resolvedContent", v.hash, v.attempts, v."nextAttemptAt", v."lastError", v."tweetId",
		v."tweetUrl",
	v.meta, v."createdAt", v."updatedAt", v."postedAt", v."rejectedReason", v."duplicateOf", v.digest, v.backfill
from autopost.x_post_events_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
