create or replace function autopost.orphans(p_workspace_id text, p_from timestamptz, p_to timestamptz)
	returns setof jsonb
language plpgsql
as $$
-- Purpose: rows of that time with a reference to a missing row, among the newest 100,000 rows per
--          table.
-- Returns: {"kind": table and reference, "id", "refers_to"} each.
-- Reads:   events, deliveries, messages, channels, ingress_receipts, submissions, message_media,
--          media_origin, media_blobs.
begin
	return query
	select jsonb_build_object('kind', r.kind, 'id', e.id, 'refers_to', r.refers_to)
	from (
		select x.id, x.delivery_id, x.message_id, x.channel_id from autopost.events x
		where x.workspace_id = p_workspace_id and x.ts >= p_from and x.ts < p_to
		order by x.ts desc limit 100000) e
	cross join lateral (values
		('events.delivery_id', e.delivery_id::text, e.delivery_id is not null and not exists (
			select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id
				and d.delivery_id = e.delivery_id offset 0)),
		('events.message_id', e.message_id::text, e.message_id is not null and not exists (
			select 1 from autopost.messages m where m.workspace_id = p_workspace_id
				and m.message_id = e.message_id offset 0)),
		('events.channel_id', e.channel_id, e.channel_id is not null and not exists (
			select 1 from autopost.channels c where c.workspace_id = p_workspace_id
				and c.channel_id = e.channel_id offset 0))) r (kind, refers_to, lost)
	where r.lost
	union all
	select jsonb_build_object('kind', 'ingress_receipts.answer', 'id', r.receipt_id, 'refers_to',
		coalesce(r.answer ->> 'message_id', r.answer ->> 'submission_id'))
	from (
		select x.receipt_id, x.answer from autopost.ingress_receipts x
		where x.workspace_id = p_workspace_id and x.received_at >= p_from
			and x.received_at < p_to
		limit 100000) r
	where not exists (
		select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = (r.answer ->> 'message_id')::uuid offset 0)
	and not exists (
		select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
			and s.submission_id = (r.answer ->> 'submission_id')::uuid offset 0)
	union all
	select jsonb_build_object('kind', 'submissions.message_id', 'id', s.submission_id, 'refers_to', s.message_id)
	from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.status = 'enqueued' and s.updated_at >= p_from and s.updated_at < p_to
	and not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
		and m.message_id = s.message_id offset 0)
	union all
	select jsonb_build_object('kind', 'deliveries.ingest_run_id', 'id', d.delivery_id, 'refers_to', d.ingest_run_id)
	from (
		select x.delivery_id, x.ingest_run_id from autopost.deliveries x
		where x.workspace_id = p_workspace_id and x.delivery_id >= autopost.uuid_v7_of(p_from, '')
			and x.delivery_id < autopost.uuid_v7_of(p_to, '')
		order by x.delivery_id desc limit 100000) d
	where d.ingest_run_id is not null
	and not exists (select 1 from autopost.ingest_runs r
		where r.workspace_id = p_workspace_id and r.run_id = d.ingest_run_id offset 0)
	union all
	select jsonb_build_object('kind', 'messages.media', 'id', m.message_id, 'refers_to', l.blob_ref)
	from autopost.messages m
	join autopost.message_media l on l.workspace_id = p_workspace_id and l.message_id = m.message_id
	where m.workspace_id = p_workspace_id and m.created_at >= p_from and m.created_at < p_to
	and not exists (select 1 from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = l.blob_ref and o.deleted_at is null offset 0)
	union all
	select jsonb_build_object('kind', 'media_blobs.blob_ref', 'id', b.provider || '/' || b.auth_ref || '/' || b.kind,
		'refers_to', b.blob_ref)
	from autopost.media_blobs b
	where b.workspace_id = p_workspace_id and b.updated_at >= p_from and b.updated_at < p_to
	and not exists (select 1 from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = b.blob_ref and o.deleted_at is null offset 0);
end
$$;

create or replace function autopost.report_orphans(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds rows of the newest whole day (UTC) with a reference to a missing row where no
--          foreign key exists. It finds nothing in a correct system. Takes no lock and writes
--          nothing.
-- Returns: {"day", "orphans": [{"kind", "count", "sample": [{"id", "refers_to"}, up to five]}]}.
-- Reads:   as orphans.
declare
	v_day timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_day := date_trunc('day', autopost.now_ts(), 'UTC') - interval '1 day';
	return jsonb_build_object('day', to_char(v_day at time zone 'UTC', 'YYYY-MM-DD'), 'orphans', (
		select coalesce(jsonb_agg(jsonb_build_object('kind', k.kind, 'count', k.n, 'sample', k.sample) order by k.kind),
			'[]')
		from (
			select o.value ->> 'kind' as kind, count(*) as n,
				jsonb_agg(o.value - 'kind' order by o.value ->> 'id') filter (where o.place <= 5) as sample
			from (
				select f.found as value, row_number() over (partition by f.found ->> 'kind'
					order by f.found ->> 'id') as place
				from autopost.orphans(p_workspace_id, v_day, v_day + interval '1 day') f (found)) o
			group by o.value ->> 'kind') k));
end
$$;
