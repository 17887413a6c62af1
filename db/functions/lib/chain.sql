create or replace function autopost.failure_text(p_error jsonb) returns text
language sql immutable parallel safe
as $$
-- A normalised error in words: its code, how sure it is, and what the platform said.
select concat_ws(': ', coalesce(p_error ->> 'code', 'an error') || case when p_error -> 'known' = 'false' and p_error ->> 'code' <> 'unknown_outcome' then ' (outcome unknown)' else '' end,
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
-- One event in one sentence. An action without a sentence of its own is named.
select case p_event.action
	when 'enqueue' then format('enqueued: %s channels got it, %s had it already, %s could not take it, %s were skipped',
		p_event.meta ->> 'enqueued', p_event.meta ->> 'deduped', p_event.meta ->> 'invalid', p_event.meta ->> 'skipped')
	when 'validation_failed' then 'refused before sending: ' || autopost.failure_text(p_event.error)
	when 'send_attempt' then case when p_event.meta ->> 'told' = 'late' then format('call %s began; nobody said so before its outcome', p_event.attempt)
		else format('call %s began, by run %s', p_event.attempt, coalesce(p_event.meta ->> 'run_id', 'unknown')) end
	when 'sent' then format(case when p_event.meta #> '{raw,raw,reconciled}' = 'true' then 'found at the platform as %s, so not sent again' else 'the platform took it as %s' end,
		coalesce(p_event.meta ->> 'provider_message_id', 'unknown'))
	when 'retry_scheduled' then format('call %s failed, %s; again at %s', p_event.attempt, autopost.failure_text(p_event.error),
		case when p_event.meta ->> 'next_retry_at' = 'infinity' then 'a person''s word' else coalesce(autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'next_retry_at')), p_event.meta ->> 'next_retry_at') end)
	when 'failed_permanent' then 'given up: ' || autopost.failure_text(p_event.error)
	when 'dead_letter' then format('given up after %s attempts: %s', p_event.attempt, autopost.failure_text(p_event.error))
	when 'dedup_suppressed' then 'not enqueued: the channel had this content already'
	when 'message_tag_mismatch' then 'the same content came with other tags; those of the first time stay'
	when 'sending_lease_expired' then format('the lease of run %s ran out before an outcome was committed', coalesce(p_event.meta ->> 'run_id', 'unknown'))
	when 'claimed_lease_expired' then 'claimed for too long without being sent: back into the queue'
	when 'released' then 'handed back before its call began' || coalesce(', because: ' || (p_event.meta ->> 'reason'), '')
	when 'unknown_outcome' then format('nobody knows whether call %s reached the platform (%s); the channel''s policy is %s',
		p_event.attempt, coalesce(p_event.error ->> 'cause', 'no answer'), coalesce(p_event.meta ->> 'policy', 'not known'))
	when 'unknown_resolved' then format('%s looked at the platform: %s', coalesce(p_event.meta ->> 'operator', 'somebody'), p_event.meta ->> 'verdict')
	when 'stale_commit' then case when p_event.meta ->> 'reason' = 'steps_missing' then format('counts as sent only when these steps are acknowledged: %s', p_event.meta -> 'steps')
		else format('an outcome came from a claim that was over (%s): it changed nothing', coalesce(p_event.meta ->> 'call', 'commit')) end
	when 'manual_requeue' then format('put back into the queue by %s: %s', coalesce(p_event.meta ->> 'operator', 'somebody'), coalesce(p_event.meta ->> 'reason', 'no reason'))
	when 'manual_skip' then format('skipped by %s: %s', coalesce(p_event.meta ->> 'operator', 'somebody'), coalesce(p_event.meta ->> 'reason', 'no reason'))
	when 'act_requested' then format('%s asked for by %s%s: %s', autopost.act_word(p_event.meta ->> 'kind'), p_event.meta ->> 'operator',
		coalesce(' for ' || autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'at')), ''), p_event.meta ->> 'reason')
	when 'act_done' then format('%s: done at the platform', autopost.act_word(p_event.meta ->> 'kind'))
	when 'act_retry_scheduled' then format('%s: call %s failed, %s; again at %s', autopost.act_word(p_event.meta ->> 'kind'), p_event.meta ->> 'call', autopost.failure_text(p_event.error),
		autopost.instant_text(autopost.timestamp_of(p_event.meta ->> 'next_at')))
	when 'act_failed' then format('%s: given up after call %s, %s', autopost.act_word(p_event.meta ->> 'kind'), p_event.meta ->> 'call', autopost.failure_text(p_event.error))
	when 'act_void' then format('%s: will not be done%s, %s', autopost.act_word(p_event.meta ->> 'kind'), coalesce(' by the word of ' || (p_event.meta ->> 'operator'), ''), p_event.meta ->> 'why')
	else replace(p_event.action, '_', ' ') || coalesce(': ' || autopost.failure_text(p_event.error), '')
	end
$$;

create or replace function autopost.chain_of(p_workspace_id text, p_delivery autopost.deliveries) returns jsonb
language plpgsql stable
as $$
-- What happened to a delivery, in order: its own events, and the enqueue of its run. The newest 1,000.
-- Reads: events.
begin
	return (
		select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('ts', x.e -> 'ts', 'action', x.e -> 'action', 'attempt', x.e -> 'attempt', 'result', x.e -> 'result',
			'sentence', x.sentence, 'error', x.e -> 'error')) order by x.ts, x.id), '[]')
		from (
			select to_jsonb(e) as e, e.ts, e.id, autopost.event_text(e) as sentence
			from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = p_delivery.delivery_id
			and e.ts >= p_delivery.created_at - interval '1 hour'
			union all
			select to_jsonb(e), e.ts, e.id, autopost.event_text(e)
			from autopost.events e
			where e.workspace_id = p_workspace_id and e.message_id = p_delivery.message_id and e.delivery_id is null
			and e.ts between p_delivery.created_at - interval '1 hour' and p_delivery.created_at + interval '1 hour'
			and e.action in ('enqueue', 'message_tag_mismatch') and (e.meta ->> 'run_id')::uuid = p_delivery.ingest_run_id
			order by 2 desc, 3 desc
			limit 1000) x);
end
$$;
