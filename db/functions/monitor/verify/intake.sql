-- Acknowledged posts and the queue. Each function returns the offending rows.

create or replace function autopost.verify_i05(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I5. Uses the channel's present window, so only deliveries since the
--          last change of its row count. Refused and suppressed posts were never enqueued; rows
--          inserted by hand have no run.
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'channel_id', d.channel_id, 'created_at', d.created_at,
		'sent_already', d.sent_before)
	from (
		select x.delivery_id, x.channel_id, x.status, x.attempt, x.ingest_run_id, x.created_at,
			max(case when x.status = 'sent' then x.sent_at end) over (
				partition by x.channel_id, x.hash_version, x.content_hash order by x.created_at, x.delivery_id
				rows between unbounded preceding and 1 preceding) as sent_before
		from autopost.deliveries x
		where x.workspace_id = p_workspace_id) d
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
	where d.sent_before <= d.created_at
		and d.sent_before > d.created_at - make_interval(hours => coalesce(c.dedup_ttl_hours, 168))
	and d.ingest_run_id is not null and d.created_at >= c.updated_at
	and d.status <> 'deduped' and (d.attempt > 0 or d.status <> 'failed_permanent');
end
$$;

create or replace function autopost.verify_i17(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I17. Each acknowledged post of a run is a message or a submission,
--          with a fan-out if one was promised. Each enqueued submission has its message. Each
--          enqueue event, or the running job, counts the rows and drops of its post. A suppressed
--          repeat has an earlier delivery. Grouped drops have equal counts in the run and its
--          event.
begin
	return query
	with logged as (
		select e.message_id, e.meta ->> 'trace_id' as trace_id, e.meta as said from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'enqueue'
		union all
		select j.message_id, j.trace_id::text, autopost.fanout_counts(row(j.*)::autopost.fanout_jobs)
			from autopost.fanout_jobs j
		where j.workspace_id = p_workspace_id and j.status = 'running'
	)
	select jsonb_build_object('what', 'answered, but lost', 'run_id', r.run_id, 'item', i.value - 'deliveries')
	from autopost.ingest_runs r
	cross join lateral jsonb_array_elements(r.items) i
	where r.workspace_id = p_workspace_id
	and r.started_at >= (select autopost.verify_kept_since(p_workspace_id))
	and case replace(replace(i.value ->> 'status', 'pending', 'accepted'), 'approved', 'accepted')
		when 'enqueued' then not exists (
				select 1 from autopost.messages m where m.workspace_id = p_workspace_id
					and m.message_id = (i.value ->> 'message_id')::uuid)
			or (i.value ->> 'fanout' = 'running' and not exists (
				select 1 from autopost.fanout_jobs j
				where j.workspace_id = p_workspace_id and j.run_id = (i.value ->> 'run_id')::uuid
					and j.trace_id = (i.value ->> 'trace_id')::uuid))
		when 'accepted' then not exists (
			select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
				and s.submission_id = (i.value ->> 'submission_id')::uuid) end
	union all
	select jsonb_build_object('what', 'submission without a message', 'submission_id', s.submission_id, 'message_id',
		s.message_id, 'answer', s.answer)
	from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.status = 'enqueued'
	and not exists (
		select 1 from autopost.messages m where m.workspace_id = p_workspace_id and m.message_id = s.message_id)
	union all
	select jsonb_build_object('what', 'miscounted', 'message_id', e.message_id, 'said', e.said, 'deliveries',
		coalesce(d.n, 0), 'dropped', coalesce(x.n, 0))
	from logged e
	left join (
		select d.message_id, d.trace_id::text as trace_id, count(*) as n,
			count(*) filter (where d.status <> 'deduped') as passed
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id
		group by d.message_id, d.trace_id) d on d.message_id = e.message_id and d.trace_id = e.trace_id
	left join (
		select s.message_id, s.meta ->> 'trace_id' as trace_id,
			sum(coalesce(jsonb_array_length(s.meta -> 'channels'), 1)) as n
		from autopost.events s
		where s.workspace_id = p_workspace_id and s.action = 'dedup_suppressed' and s.delivery_id is null
		group by s.message_id, s.meta ->> 'trace_id') x on x.message_id = e.message_id and x.trace_id = e.trace_id
	where (e.said ->> 'enqueued')::int + (e.said ->> 'invalid')::int not between coalesce(d.passed, 0)
		and coalesce(d.n, 0)
	or (e.said ->> 'deduped')::int <> coalesce(x.n, 0)
	union all
	select jsonb_build_object('what', 'dropped, but no repeat', 'message_id', e.message_id, 'channel_id', e.channel_id,
		'ts', e.ts)
	from autopost.events e
	where e.workspace_id = p_workspace_id and e.action = 'dedup_suppressed' and e.delivery_id is null
		and e.channel_id is not null
	and not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = e.message_id and d.channel_id = e.channel_id
		and d.created_at <= e.ts and d.trace_id::text <> e.meta ->> 'trace_id')
	union all
	select jsonb_build_object('what', 'drops miscounted', 'run_id', r.run_id, 'stats', r.stats_json, 'said', e.meta)
	from autopost.ingest_runs r
	left join autopost.events e on e.workspace_id = p_workspace_id and e.meta ->> 'run_id' = r.run_id::text
		and e.meta ? 'requests'
		and e.action in ('ingress_rate_limited', 'ingress_payload_rejected', 'ingress_dedup_dropped')
	where r.workspace_id = p_workspace_id and r.stats_json ? 'requests' and r.finished_at is not null
	and r.started_at >= (select autopost.verify_kept_since(p_workspace_id))
	and (e.meta -> 'requests', e.meta -> 'items') is distinct from (r.stats_json -> 'requests',
		r.stats_json -> autopost.drop_counter(e.action));
end
$$;

create or replace function autopost.verify_i31(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I31. A receipt has the answer, which names the message or
--          submission. A source has as many receipts as its runs have posts and seen items; a run
--          keeps its first 1,000 posts. A signed request keeps all its answers.
begin
	return query
	select jsonb_build_object('receipt_id', r.receipt_id, 'endpoint_id', r.endpoint_id, 'source_ref', r.source_ref,
		'run_id', r.run_id, 'answer', r.answer)
	from autopost.ingress_receipts r
	where r.workspace_id = p_workspace_id
	and not exists (
		select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = (r.answer ->> 'message_id')::uuid)
	and not exists (
		select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
			and s.submission_id = (r.answer ->> 'submission_id')::uuid)
	union all
	select jsonb_build_object('endpoint_id', r.endpoint_id, 'webhook_id', r.webhook_id, 'answer', a.value)
	from autopost.signed_requests r
	left join lateral jsonb_array_elements(r.results) a on true
	where r.workspace_id = p_workspace_id
	and coalesce(a.value ->> 'status' in ('enqueued', 'accepted'), a.value is null)
	and not exists (
		select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = (a.value ->> 'message_id')::uuid)
	and not exists (
		select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
			and s.submission_id = (a.value ->> 'submission_id')::uuid)
	union all
	select jsonb_build_object('source_id', p.source_id, 'run_id', p.run_id, 'receipts', p.n, 'posts',
		jsonb_array_length(r.items), 'seen', r.stats_json -> 'seen')
	from (
		select q.source_id, q.run_id, count(*) as n from autopost.pull_receipts q
		where q.workspace_id = p_workspace_id and q.received_at >= (select autopost.verify_kept_since(p_workspace_id))
		group by q.source_id, q.run_id) p
	left join autopost.ingest_runs r on r.workspace_id = p_workspace_id and r.run_id = p.run_id
	where r.run_id is null
	or (jsonb_array_length(r.items) < 1000 and p.n > jsonb_array_length(r.items) + coalesce((r.stats_json ->> 'seen')::int,
		0));
end
$$;

create or replace function autopost.verify_i38(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'blob_ref', b.value ->> 'blob_ref')
	from autopost.deliveries d
	join autopost.messages m on m.workspace_id = p_workspace_id and m.message_id = d.message_id and m.payload ? 'media'
	cross join lateral jsonb_array_elements(m.payload -> 'media') b
	where d.workspace_id = p_workspace_id and d.phase in ('active', 'claimed', 'retry')
	and b.value ? 'blob_ref'
	and not exists (
		select 1 from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = b.value ->> 'blob_ref' and o.deleted_at is null);
end
$$;

create or replace function autopost.verify_i39(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I39. Deliveries that events report as sent within the window are
--          stored as sent. Dropped events prove nothing.
begin
	return query
	select jsonb_build_object('delivery_id', e.delivery_id, 'channel_id', e.channel_id, 'sent_at', e.ts)
	from autopost.events e
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = e.channel_id
	where e.workspace_id = p_workspace_id and e.action = 'sent'
	and e.ts > autopost.now_ts() - make_interval(hours => coalesce(c.dedup_ttl_hours, 168))
	and not exists (
		select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id and d.delivery_id = e.delivery_id);
end
$$;

create or replace function autopost.verify_i40(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I40. Checks the newest 1,000 messages with the present hash version.
begin
	return query
	select jsonb_build_object('message_id', m.message_id, 'content_hash', m.content_hash, 'hashed_now',
		autopost.content_hash(m.payload))
	from (
		select n.message_id, n.content_hash, n.payload, n.hash_version from autopost.messages n
		where n.workspace_id = p_workspace_id
		order by n.created_at desc
		limit 1000) m
	where m.hash_version = autopost.hash_version() and m.content_hash <> autopost.content_hash(m.payload);
end
$$;
