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

create or replace function autopost.repeats_in_push(p_endpoint autopost.workspace_endpoints, p_items jsonb,
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
		where p_results[i.ordinality] -> 'status' = '"duplicate"' and i.value ->> 'source_ref' is null
		union all
		select i.ordinality::int, r.answer
		from jsonb_array_elements(p_items) with ordinality i
		join autopost.ingress_receipts r on r.workspace_id = p_endpoint.workspace_id
			and r.endpoint_id = p_endpoint.endpoint_id
			and r.source_ref = i.value ->> 'source_ref' and r.run_id = p_run_id
		where p_results[i.ordinality] -> 'status' = '"duplicate"'
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

create or replace function autopost.end_push(p_endpoint autopost.workspace_endpoints, p_items jsonb, p_results jsonb[],
	p_run_id uuid) returns jsonb
language plpgsql
as $$
-- Purpose: ends the run of a push and writes an event for each duplicate. A push of duplicates only
--          has no run yet; above a rate it shares one.
-- Returns: {"run_id", "results"}.
-- Locks:   ingress_floods.
-- Writes:  ingest_runs, ingress_floods, events (ingress_dedup_dropped).
declare
	v_run_id uuid;
begin
	if (select bool_and(r.answer -> 'status' = '"duplicate"') from unnest(p_results) r (answer)) then
		v_run_id := autopost.join_flood(p_endpoint.workspace_id, p_endpoint.endpoint_id, 'ingress_dedup_dropped',
			cardinality(p_results), '{}');
		if v_run_id is not null then
			return jsonb_build_object('run_id', v_run_id, 'results', p_results);
		end if;
		perform autopost.begin_run(p_endpoint.workspace_id, p_run_id, 'push', p_endpoint.endpoint_id, null);
	end if;
	perform autopost.emit_note(p_endpoint.workspace_id, 'ingress_dedup_dropped', 'ok',
		null, (r.answer ->> 'message_id')::uuid, null,
		jsonb_build_object('endpoint_id', p_endpoint.endpoint_id, 'source_ref',
			p_items -> (r.n - 1)::int -> 'source_ref', 'run_id', p_run_id, 'first_run_id', r.answer -> 'run_id'))
	from unnest(p_results) with ordinality r (answer, n)
	where r.answer -> 'status' = '"duplicate"';
	-- A duplicate repeats the counts of the first post; this run must not count them.
	perform autopost.close_run(p_endpoint.workspace_id, p_run_id, autopost.answer_stats((
		select jsonb_agg(case when r.answer -> 'status' = '"duplicate"' then '{"status": "duplicate"}'
			else r.answer end)
		from unnest(p_results) r (answer))), to_jsonb(p_results));
	return jsonb_build_object('run_id', p_run_id, 'results', p_results);
end
$$;

create or replace function autopost.take_push(p_endpoint autopost.workspace_endpoints, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: takes the posts of one push: receipts, run, and enqueue or submission.
-- Returns: {"run_id", "results": [one per post, in order]}.
-- Locks:   ingress_receipts (source_ref), messages, channel_gates, in this order; ingress_floods if
--          all are duplicates.
declare
	v_workspace_id text := p_endpoint.workspace_id;
	v_now timestamptz := autopost.now_ts();
	v_run_id uuid := autopost.new_id();
	v_items jsonb[] := '{}';
	v_results jsonb[] := '{}';
	v_item record;
	v_fresh int[] := '{}';
	v_taken jsonb;
begin
	for v_item in
		select i.value as raw, i.ordinality::int as n, autopost.post_errors(v_workspace_id, i.value) as errors
		from jsonb_array_elements(p_items) with ordinality i
		order by i.value ->> 'source_ref', case when not i.value ? 'source_ref' then autopost.receipt_hash(i.value) end,
			i.ordinality
	loop
		if v_item.errors <> '[]' then
			v_results[v_item.n] := jsonb_build_object('status', 'rejected', 'run_id', v_run_id, 'errors',
				v_item.errors);
		else
			v_items[v_item.n] := jsonb_build_object('raw', v_item.raw, 'trace_id', autopost.new_id(), 'receipt_id',
				autopost.new_id());
			v_results[v_item.n] := autopost.take_receipt(p_endpoint,
				v_item.raw, (v_items[v_item.n] ->> 'receipt_id')::uuid, v_run_id, v_now);
			if v_results[v_item.n] is null then
				v_fresh := v_fresh || v_item.n;
			end if;
		end if;
	end loop;
	if exists (select 1 from unnest(v_results) r (answer) where r.answer -> 'status' is distinct from '"duplicate"')
		then
		perform autopost.begin_run(v_workspace_id, v_run_id, 'push', p_endpoint.endpoint_id, null);
	end if;
	select array_agg(f.n order by f.n) into v_fresh from unnest(v_fresh) f (n);
	v_taken := autopost.take_posts(v_workspace_id, p_endpoint.endpoint_id, 'push',
		(select coalesce(jsonb_agg(v_items[f.n] order by f.n), '[]') from unnest(v_fresh) f (n)), v_run_id, v_now);
	for v_item in select t.value - 'deliveries' || case when t.value ->> 'status' = 'duplicate'
		then '{"status": "enqueued"}' else '{}' end::jsonb as answer, v_fresh[t.ordinality] as n
		from jsonb_array_elements(v_taken) with ordinality t
	loop
		v_results[v_item.n] := v_item.answer;
		update autopost.ingress_receipts r
		set answer = v_item.answer
		where r.workspace_id = v_workspace_id and r.receipt_id = (v_items[v_item.n] ->> 'receipt_id')::uuid;
	end loop;
	v_results := autopost.warned(v_workspace_id, p_items,
		autopost.repeats_in_push(p_endpoint, p_items, v_results, v_run_id));
	return autopost.end_push(p_endpoint, p_items, v_results, v_run_id);
end
$$;
