create or replace function autopost.failure_text(p_error jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: an error in words: its code, whether the outcome is known, and the platform's message.
select concat_ws(': ', coalesce(p_error ->> 'code', 'an error') || case when p_error -> 'known' = 'false'
	and p_error ->> 'code' <> 'unknown_outcome' then ' (outcome unknown)' else '' end,
	left(p_error ->> 'message', 200))
$$;

create or replace function autopost.act_word(p_kind text) returns text
language sql immutable parallel safe
as $$
select case p_kind when 'edit' then 'edit' when 'delete' then 'removal' when 'pin' then 'pinning' else 'unpinning' end
$$;

create or replace function autopost.event_text(p_event autopost.events) returns text
language sql stable
as $$
-- Purpose: describes an event in one sentence; an action without a sentence by its name.
select case p_event.action
	when 'enqueue' then format('enqueued: %s got it, %s had it already, %s could not take it, %s were skipped',
		autopost.counted((p_event.meta ->> 'enqueued')::bigint, 'channel', 'channels'), p_event.meta ->> 'deduped',
		p_event.meta ->> 'invalid', p_event.meta ->> 'skipped')
	when 'validation_failed' then 'refused before sending: ' || autopost.failure_text(p_event.error)
	when 'send_attempt' then case when p_event.meta ->> 'told' = 'late'
		then format('call %s began; recorded only with its outcome', p_event.attempt)
		else format('call %s began, by run %s', p_event.attempt, coalesce(p_event.meta ->> 'run_id', 'unknown')) end
	when 'sent' then format(case when p_event.meta #> '{raw,raw,reconciled}' = 'true'
		then 'found at the platform as %s, so not sent again' else 'the platform accepted it as %s' end,
		coalesce(p_event.meta ->> 'provider_message_id', 'unknown'))
	when 'retry_scheduled' then format('call %s failed, %s; again at %s', p_event.attempt,
		autopost.failure_text(p_event.error),
		case when p_event.meta ->> 'next_retry_at' = 'infinity' then 'the decision of an operator'
			else coalesce(autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'next_retry_at')),
			p_event.meta ->> 'next_retry_at') end)
	when 'comment_failed' then 'the first comment is given up, and the post stays: '
		|| autopost.failure_text(p_event.error)
	when 'failed_permanent' then 'given up: ' || autopost.failure_text(p_event.error)
	when 'dead_letter' then format('given up after %s: %s', autopost.counted(p_event.attempt, 'attempt', 'attempts'),
		autopost.failure_text(p_event.error))
	when 'dedup_suppressed' then 'not enqueued: the channel had this content already'
	when 'message_tag_mismatch' then 'the same content came with other tags; the first tags stay'
	when 'sending_lease_expired' then format('the lease of run %s ran out before an outcome was committed',
		coalesce(p_event.meta ->> 'run_id', 'unknown'))
	when 'claimed_lease_expired' then 'claimed for too long without being sent: back into the queue'
	when 'released' then 'released before its call began' || coalesce(', because: ' || (p_event.meta ->> 'reason'),
		'')
	when 'unknown_outcome'
		then format('it is unknown if call %s reached the platform (%s); the channel''s policy is %s',
		p_event.attempt, coalesce(p_event.error ->> 'cause', 'no answer'),
			coalesce(p_event.meta ->> 'policy', 'not known'))
	when 'unknown_resolved' then format('%s checked the platform: %s',
		coalesce(p_event.meta ->> 'operator', 'an operator'), p_event.meta ->> 'verdict')
	when 'stale_commit' then case when p_event.meta ->> 'reason' = 'steps_missing'
		then format('counts as sent only when these steps are acknowledged: %s', p_event.meta -> 'steps')
		else format('an outcome of an ended claim (%s) changed nothing',
			coalesce(p_event.meta ->> 'call', 'commit')) end
	when 'manual_requeue' then format('requeued by %s: %s',
		coalesce(p_event.meta ->> 'operator', 'an operator'), coalesce(p_event.meta ->> 'reason', 'no reason'))
	when 'manual_skip' then format('%s by %s: %s', coalesce('replaced by post ' || (p_event.meta ->> 'replaced_by'),
			'skipped'), coalesce(p_event.meta ->> 'operator', 'an operator'), coalesce(p_event.meta ->> 'reason',
				'no reason'))
	when 'rescheduled' then format('moved from %s to %s by %s: %s',
		autopost.instant_text((p_event.meta ->> 'before')::timestamptz),
		autopost.instant_text((p_event.meta ->> 'scheduled_for')::timestamptz), p_event.meta ->> 'operator',
		p_event.meta ->> 'reason')
	when 'act_requested' then format('%s requested by %s%s: %s', autopost.act_word(p_event.meta ->> 'kind'),
		p_event.meta ->> 'operator',
		coalesce(' for ' || autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'at')), ''),
			p_event.meta ->> 'reason')
	when 'act_done' then format('%s: done at the platform', autopost.act_word(p_event.meta ->> 'kind'))
	when 'act_retry_scheduled' then format('%s: call %s failed, %s; again at %s',
		autopost.act_word(p_event.meta ->> 'kind'), p_event.meta ->> 'call', autopost.failure_text(p_event.error),
		autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'next_at')))
	when 'act_failed' then format('%s: given up after call %s, %s', autopost.act_word(p_event.meta ->> 'kind'),
		p_event.meta ->> 'call', autopost.failure_text(p_event.error))
	when 'act_void' then format('%s: will not be done%s, %s', autopost.act_word(p_event.meta ->> 'kind'),
		coalesce(' by decision of ' || (p_event.meta ->> 'operator'), ''), p_event.meta ->> 'why')
	else replace(p_event.action, '_', ' ') || coalesce(': ' || autopost.failure_text(p_event.error), '')
	end
$$;

create or replace function autopost.delivery_history(p_workspace_id text, p_delivery autopost.deliveries) returns jsonb
language plpgsql stable
as $$
-- Purpose: the newest 1,000 events of a delivery in order, with the enqueue of its run. Events of one instant
--          start with those of the run: ids of one millisecond have no order.
-- Reads:   events.
begin
	return (
		select coalesce(
			jsonb_agg(jsonb_strip_nulls(jsonb_build_object('ts', x.e -> 'ts', 'action', x.e -> 'action', 'attempt',
			x.e -> 'attempt', 'result', x.e -> 'result',
			'sentence', x.sentence, 'error', x.e -> 'error'))
			order by x.ts, x.e -> 'delivery_id' <> 'null', x.id), '[]')
		from (
			select to_jsonb(e) as e, e.ts, e.id, autopost.event_text(row(e.*)::autopost.events) as sentence
			from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = p_delivery.delivery_id
			and e.ts >= p_delivery.created_at - interval '1 hour'
			union all
			select to_jsonb(e), e.ts, e.id, autopost.event_text(row(e.*)::autopost.events)
			from autopost.events e
			where e.workspace_id = p_workspace_id and e.message_id = p_delivery.message_id and e.delivery_id is null
			and e.ts between p_delivery.created_at - interval '1 hour' and p_delivery.created_at + interval '1 hour'
			and e.action in ('enqueue', 'message_tag_mismatch')
				and (e.meta ->> 'run_id')::uuid = p_delivery.ingest_run_id
			order by 2 desc, 3 desc
			limit 1000) x);
end
$$;
