create or replace function autopost.ingest_pull_chunk(
	p_workspace_id text, p_source_id text, p_endpoint_id text, p_items jsonb, p_now timestamptz default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes a chunk of a source's items, oldest first, in one transaction: receipts, then
--          submissions or deliveries. set_pull_cursor stores the cursor. p_items: [{"source_ref",
--          "payload": {raw payload}, "tags": […], "cursor": {…}, "skip": true, "skip_reason"}],
--          with the tags of the source; or raw payloads with source_ref and perhaps a cursor.
--          "skip" only marks an item as seen. An item with a receipt is dropped. A rejected item
--          has an event and keeps its receipt, because the source cannot correct it. A receipt lives while its
--          source shows the item. It ends when the source was polled after its expiry and did not
--          show the item.
-- Returns: {"run_id", "cursor_to", "enqueued", "duplicate", "rejected", "submitted", "skipped",
--          "skipped_by": {reason: n}, "results"}. Advance to cursor_to only after the commit.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_receipts (source_ref), messages, channel_gates, in this order.
declare
	v_now timestamptz;
	v_run_id uuid;
	v_new text[];
	v_posts jsonb;
	v_answers jsonb;
	v_stats jsonb;
	v_skipped jsonb;
	v_polled timestamptz;
	v_expiry timestamptz;
	v_fault text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('source_id', p_source_id <> '');
	v_now := autopost.deciding_now(p_now);
	perform autopost.known_sender(p_workspace_id, p_endpoint_id);
	if (autopost.known_endpoint(p_workspace_id, p_endpoint_id)).source_id is distinct from p_source_id then
		perform autopost.raise_argument('endpoint_id',
			format('%s is not the endpoint of source %s', p_endpoint_id, p_source_id),
			'use the source''s enabled endpoint of kind pull_source');
	elsif jsonb_typeof(p_items) is distinct from 'array' or exists (select 1 from jsonb_array_elements(p_items) i
		where coalesce(i.value ->> 'source_ref', '') = '') then
		perform autopost.raise_argument('items', 'must be an array of items with a source_ref',
			'pass [{"source_ref", "payload"}]');
	end if;
	select format('has item %s without a payload', i.value -> 'source_ref') into v_fault
		from jsonb_array_elements(p_items) i
	where i.value -> 'skip' is distinct from 'true' and jsonb_typeof(i.value -> 'payload') is distinct from 'object'
		and (i.value ? 'payload' or not i.value ?| '{text,media,link}')
	limit 1;
	if v_fault is not null then -- otherwise only its receipt would remain
		perform autopost.raise_argument('items', v_fault,
			'pass [{"source_ref", "payload": {"text": "…"}}], or "skip": true to only mark an item as seen');
	end if;
	v_run_id := autopost.open_run(p_workspace_id, 'pull', p_endpoint_id, p_source_id);
	perform 1 from autopost.pull_sources s where s.workspace_id = p_workspace_id
		and s.source_id = p_source_id for no key update of s;
	v_polled := (select c.last_poll_at from autopost.pull_cursors c
		where c.workspace_id = p_workspace_id and c.source_id = p_source_id);
	v_expiry := v_now + autopost.setting_interval('pull_receipt_ttl_hours');
	delete from autopost.pull_receipts r
	where r.workspace_id = p_workspace_id and r.source_id = p_source_id and r.expires_at <= v_polled
	and r.source_ref in (select i.value ->> 'source_ref' from jsonb_array_elements(p_items) i);
	update autopost.pull_receipts r
	set expires_at = v_expiry
	where r.workspace_id = p_workspace_id and r.source_id = p_source_id and r.expires_at < v_expiry - interval '1 day'
	and r.source_ref in (select i.value ->> 'source_ref' from jsonb_array_elements(p_items) i);
	select array_agg(n.source_ref) into v_new
	from (
		select distinct i.value ->> 'source_ref' as source_ref from jsonb_array_elements(p_items) i
		except
		select r.source_ref from autopost.pull_receipts r
			where r.workspace_id = p_workspace_id and r.source_id = p_source_id
	) n;
	insert into autopost.pull_receipts (workspace_id, source_id, source_ref, run_id, received_at, expires_at)
	select s.workspace_id, s.source_id, n.source_ref, v_run_id, v_now, v_expiry
	from unnest(v_new) n (source_ref)
	join autopost.pull_sources s on s.workspace_id = p_workspace_id and s.source_id = p_source_id;

	select
		coalesce(jsonb_agg(jsonb_build_object('raw',
			coalesce(f.item -> 'payload', f.item - '{cursor,skip,skip_reason}'::text[]), 'trace_id', autopost.new_id(),
			'source_ref', f.item -> 'source_ref',
			'route_tags', coalesce(case when f.item ? 'payload' then f.item -> 'tags' end, '[]'))
			order by f.n) filter (where f.item -> 'skip' is distinct from 'true'), '[]'),
		jsonb_agg(coalesce(f.item ->> 'skip_reason', 'asked')) filter (where f.item -> 'skip' = 'true')
	into v_posts, v_skipped
	from (
		select distinct on (i.value ->> 'source_ref') i.value as item, i.ordinality as n
			from jsonb_array_elements(p_items) with ordinality i
		where i.value ->> 'source_ref' = any (v_new)
		order by i.value ->> 'source_ref', i.ordinality) f;
	v_skipped := (select coalesce(jsonb_object_agg(k.reason, k.n), '{}')
		from (select e.value as reason, count(*) as n from jsonb_array_elements_text(v_skipped) e group by e.value) k);
	v_answers := autopost.take_posts(p_workspace_id, p_endpoint_id, 'pull', v_posts, v_run_id, v_now);
	select jsonb_agg(a.value || case when a.value -> 'status' = '"rejected"'
		then jsonb_build_object('source_ref', v_posts -> (a.ordinality - 1)::int -> 'source_ref') else '{}' end
		order by a.ordinality) into v_answers
	from jsonb_array_elements(v_answers) with ordinality a;
	v_answers := coalesce(v_answers, '[]');
	perform autopost.record_rejected(p_workspace_id, p_endpoint_id, p_source_id, v_run_id,
		jsonb_path_query_array(v_answers, '$[*] ? (@.status == "rejected")'));
	select jsonb_build_object(
		'enqueued', count(*) filter (where a.value ->> 'status' = 'enqueued'),
		'submitted', count(*) filter (where a.value ->> 'status' = 'accepted'),
		'rejected', count(*) filter (where a.value ->> 'status' = 'rejected'),
		'duplicate', jsonb_array_length(p_items) - coalesce(cardinality(v_new), 0) + count(*)
			filter (where a.value ->> 'status' = 'duplicate'),
		'skipped', coalesce(cardinality(v_new), 0) - jsonb_array_length(v_posts), 'skipped_by', v_skipped)
	into v_stats
	from jsonb_array_elements(v_answers) a;
	perform autopost.close_run(p_workspace_id, v_run_id,
		autopost.answer_stats(v_answers) || jsonb_build_object('dedup_dropped', v_stats -> 'duplicate', 'seen',
		v_stats -> 'skipped')
		|| (select coalesce(jsonb_object_agg('seen_' || k.key, k.value), '{}') from jsonb_each(v_skipped) k),
			v_answers);
	return v_stats || jsonb_build_object('run_id', v_run_id, 'results', v_answers, 'cursor_to',
		p_items -> -1 -> 'cursor');
end
$$;
