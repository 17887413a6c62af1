create or replace function autopost.push_endpoint(p_workspace_id text, p_endpoint_id text, p_items jsonb)
	returns autopost.workspace_endpoints
language plpgsql stable
as $$
-- Purpose: the endpoint for these posts.
-- Raises:  AP001 for a wrong endpoint or wrong items.
declare
	v_endpoint autopost.workspace_endpoints;
begin
	perform autopost.known_sender(p_workspace_id, p_endpoint_id);
	v_endpoint := autopost.known_endpoint(p_workspace_id, p_endpoint_id);
	if v_endpoint.kind <> 'webhook_push' then
		perform autopost.raise_argument('endpoint_id', format('%s is of kind %s', p_endpoint_id, v_endpoint.kind),
			'use an endpoint of kind webhook_push');
	elsif jsonb_typeof(p_items) is distinct from 'array' or jsonb_array_length(p_items) not between 1 and 100 then
		perform autopost.raise_argument('items', 'must be an array of 1 to 100 posts',
			'pass a JSON array of raw payloads');
	end if;
	return v_endpoint;
end
$$;

create or replace function autopost.is_repeat(p_answer jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a receipt dropped the post. The answer of an enqueue is also duplicate if each
--          channel had the content; it has deliveries.
select coalesce(p_answer -> 'status' = '"duplicate"' and not p_answer ? 'deliveries', false)
$$;

create or replace function autopost.repeats_in_request(p_endpoint autopost.workspace_endpoints, p_items jsonb,
	p_results jsonb[], p_run_id uuid) returns jsonb[]
language plpgsql
as $$
-- Purpose: the results with the final answer of each repeat within the array. The repeat was found
--          before the first post had its answer.
-- Reads:   ingress_receipts.
declare
	v_item record;
	v_results jsonb[] := p_results;
begin
	for v_item in
		select i.ordinality::int as n, r.answer
		from jsonb_array_elements(p_items) with ordinality i
		join autopost.ingress_receipts r on r.workspace_id = p_endpoint.workspace_id
			and r.endpoint_id = p_endpoint.endpoint_id
			and r.payload_hash = autopost.receipt_hash(i.value) and r.source_ref is null and r.run_id = p_run_id
		where autopost.is_repeat(p_results[i.ordinality]) and i.value ->> 'source_ref' is null
		union all
		select i.ordinality::int, r.answer
		from jsonb_array_elements(p_items) with ordinality i
		join autopost.ingress_receipts r on r.workspace_id = p_endpoint.workspace_id
			and r.endpoint_id = p_endpoint.endpoint_id
			and r.source_ref = i.value ->> 'source_ref' and r.run_id = p_run_id
		where autopost.is_repeat(p_results[i.ordinality])
	loop
		v_results[v_item.n] := v_item.answer || '{"status": "duplicate"}';
	end loop;
	return v_results;
end
$$;

create or replace function autopost.warned(p_workspace_id text, p_items jsonb, p_results jsonb[]) returns jsonb[]
language plpgsql stable
as $$
-- Purpose: the results, each with the ignored fields of its post as warnings.
begin
	return (
		select array_agg(p_results[i.ordinality] || case when w.fields <> '[]' then jsonb_build_object('warnings', w.fields)
			else '{}' end order by i.ordinality)
		from jsonb_array_elements(p_items) with ordinality i
		cross join lateral (
			select case when jsonb_typeof(i.value) = 'object' then autopost.post_warnings(p_workspace_id, i.value)
				else '[]' end as fields) w);
end
$$;

create or replace function autopost.end_request(p_endpoint autopost.workspace_endpoints, p_kind text, p_items jsonb,
	p_results jsonb[], p_run_id uuid) returns jsonb
language plpgsql
as $$
-- Purpose: ends the run of a request and writes an event for each duplicate and rejected post. A
--          request that brought nothing new has no run yet; pushes of that kind share one above a
--          rate.
-- Returns: {"run_id", "results"}.
-- Locks:   ingress_floods.
-- Writes:  ingest_runs, ingress_floods, events (ingress_dedup_dropped, ingress_payload_rejected).
declare
	v_results jsonb[] := array(
		select r.answer || case when r.answer -> 'status' = '"rejected"' and i.value ? 'source_ref'
			then jsonb_build_object('source_ref', i.value -> 'source_ref') else '{}' end
		from unnest(p_results) with ordinality r (answer, n)
		join jsonb_array_elements(p_items) with ordinality i on i.ordinality = r.n
		order by r.n);
	v_repeats int := (select count(*) from unnest(p_results) r (answer) where autopost.is_repeat(r.answer));
	v_rejected jsonb := (select coalesce(jsonb_agg(r.answer order by r.n), '[]')
		from unnest(v_results) with ordinality r (answer, n) where r.answer -> 'status' = '"rejected"');
	v_shared uuid;
begin
	if not exists (
		select 1 from autopost.ingest_runs r where r.workspace_id = p_endpoint.workspace_id and r.run_id = p_run_id)
	then
		if p_kind = 'push' then
			v_shared := autopost.join_flood(p_endpoint.workspace_id, p_endpoint.endpoint_id,
				case when v_rejected = '[]' then 'ingress_dedup_dropped' else 'ingress_payload_rejected' end,
				jsonb_build_object('dedup_dropped', v_repeats, 'payload_rejected', jsonb_array_length(v_rejected)),
				autopost.rejection(v_rejected -> 0));
		end if;
		if v_shared is not null then
			return jsonb_build_object('run_id', v_shared, 'results', (
				select jsonb_agg(r.answer || case when r.answer -> 'run_id' = to_jsonb(p_run_id)
					then jsonb_build_object('run_id', v_shared) else '{}' end order by r.n)
				from unnest(v_results) with ordinality r (answer, n)));
		end if;
		perform autopost.begin_run(p_endpoint.workspace_id, p_run_id, p_kind, p_endpoint.endpoint_id, null);
	end if;
	perform autopost.emit_note(p_endpoint.workspace_id, 'ingress_dedup_dropped', 'ok',
		null, (r.answer ->> 'message_id')::uuid, null,
		jsonb_build_object('endpoint_id', p_endpoint.endpoint_id, 'source_ref',
			p_items -> (r.n - 1)::int -> 'source_ref', 'run_id', p_run_id, 'first_run_id', r.answer -> 'run_id'))
	from unnest(p_results) with ordinality r (answer, n)
	where autopost.is_repeat(r.answer);
	perform autopost.record_rejected(p_endpoint.workspace_id, p_endpoint.endpoint_id, null, p_run_id, v_rejected);
	-- A duplicate repeats the counts of the first post; this run must not count them.
	perform autopost.close_run(p_endpoint.workspace_id, p_run_id, autopost.answer_stats((
		select coalesce(jsonb_agg(case when autopost.is_repeat(r.answer) then '{"status": "duplicate"}'
			else r.answer end), '[]')
		from unnest(p_results) r (answer))), to_jsonb(v_results));
	return jsonb_build_object('run_id', p_run_id, 'results', v_results);
end
$$;

create or replace function autopost.take_request(p_endpoint autopost.workspace_endpoints, p_kind text, p_items jsonb,
	p_fetch boolean, p_now timestamptz, p_author text default null) returns jsonb
language plpgsql
as $$
-- Purpose: takes the posts of one request in its own run: receipts, and enqueue or submission. A
--          source_ref counts once per endpoint while its receipt lives; a push without one counts
--          once in the endpoint's hash window. A rejected post keeps no receipt: it may be sent
--          again after a correction. p_fetch false: the media must be in the media store, unless the
--          endpoint is moderated.
-- Returns: {"run_id", "results": [one per post, in order]}.
-- Locks:   ingress_receipts (source_ref), messages, channel_gates, in this order; ingress_floods if
--          nothing is new.
declare
	v_workspace_id text := p_endpoint.workspace_id;
	v_push boolean := p_fetch and p_kind = 'push';
	v_run_id uuid := autopost.new_id();
	v_items jsonb[] := '{}';
	v_results jsonb[] := '{}';
	v_receipts uuid[] := '{}';
	v_item record;
	v_errors jsonb;
	v_fresh int[] := '{}';
	v_taken jsonb;
begin
	for v_item in
		select i.value as raw, i.ordinality::int as n, v_push or i.value ? 'source_ref' as once
		from jsonb_array_elements(p_items) with ordinality i
		order by i.value ->> 'source_ref',
			case when v_push and not i.value ? 'source_ref' then autopost.receipt_hash(i.value) end, i.ordinality
	loop
		v_items[v_item.n] := jsonb_build_object('raw', v_item.raw, 'trace_id', autopost.new_id(), 'author', p_author);
		v_errors := case when v_item.once or p_fetch then autopost.entry_errors(v_workspace_id, v_item.raw) else '[]' end;
		if v_errors <> '[]' then
			v_results[v_item.n] := jsonb_build_object('status', 'rejected', 'run_id', v_run_id, 'errors', v_errors);
		elsif v_item.once then
			v_receipts[v_item.n] := autopost.new_id();
			v_results[v_item.n] := autopost.take_receipt(p_endpoint, v_item.raw, v_receipts[v_item.n], v_run_id, p_now);
		end if;
		if v_results[v_item.n] is null then
			v_fresh := v_fresh || v_item.n;
		end if;
	end loop;
	if v_fresh <> '{}' or p_items = '[]' then
		perform autopost.begin_run(v_workspace_id, v_run_id, p_kind, p_endpoint.endpoint_id, null);
	end if;
	select array_agg(f.n order by f.n) into v_fresh from unnest(v_fresh) f (n);
	v_taken := (select coalesce(jsonb_agg(v_items[f.n] order by f.n), '[]') from unnest(v_fresh) f (n));
	v_taken := case when p_fetch or p_endpoint.moderated
		then autopost.take_posts(v_workspace_id, p_endpoint.endpoint_id, p_kind, v_taken, v_run_id, p_now)
		else autopost.enqueue_posts(v_workspace_id, v_taken, v_run_id, p_now) end;
	for v_item in select t.value as answer, t.value - 'deliveries' || case when t.value ->> 'status' = 'duplicate'
		then '{"status": "enqueued"}' else '{}' end::jsonb as kept, v_fresh[t.ordinality] as n
		from jsonb_array_elements(v_taken) with ordinality t
	loop
		v_results[v_item.n] := case when v_push then v_item.kept else v_item.answer end;
		if v_receipts[v_item.n] is not null then
			update autopost.ingress_receipts r
			set answer = v_item.kept
			where r.workspace_id = v_workspace_id and r.receipt_id = v_receipts[v_item.n];
		end if;
	end loop;
	v_results := autopost.repeats_in_request(p_endpoint, p_items, v_results, v_run_id);
	if p_fetch then
		v_results := autopost.warned(v_workspace_id, p_items, v_results);
	end if;
	delete from autopost.ingress_receipts r
	where r.workspace_id = v_workspace_id and r.receipt_id = any (v_receipts) and r.answer -> 'status' = '"rejected"';
	return autopost.end_request(p_endpoint, p_kind, p_items, v_results, v_run_id);
end
$$;
