create or replace function autopost.receive_push(p_workspace_id text, p_endpoint_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Takes the posts of one push: run, receipts, and enqueue or submission, in one transaction. p_items: an array of 1 to 100 raw
-- payloads; a wrong one is rejected alone, and gets no receipt, so that it may come again corrected.
-- Returns {"run_id", "results": [...]} in order: status enqueued, accepted (media are being fetched), duplicate (with the first
-- answer's ids) or rejected (with "errors": [{"field", "reason", "remedy"}]); "warnings" names unknown fields.
-- Raises AP001 for a wrong argument. Locks, in this order: ingress_receipts (source_ref), messages, channel_gates.
declare
	v_endpoint autopost.workspace_endpoints;
	v_now timestamptz;
	v_run_id uuid;
	v_items jsonb[] := '{}';
	v_results jsonb[] := '{}';
	v_item record;
	v_fresh int[] := '{}';
	v_taken jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.known_sender(p_workspace_id, p_endpoint_id);
	v_endpoint := autopost.known_endpoint(p_workspace_id, p_endpoint_id);
	if v_endpoint.kind <> 'webhook_push' then
		perform autopost.refuse('endpoint_id', format('%s is of kind %s', p_endpoint_id, v_endpoint.kind), 'use an endpoint of kind webhook_push');
	elsif jsonb_typeof(p_items) is distinct from 'array' or jsonb_array_length(p_items) not between 1 and 100 then
		perform autopost.refuse('items', 'is no array of 1 to 100 posts', 'pass a JSON array of raw payloads');
	end if;
	v_now := autopost.now_ts();
	v_run_id := autopost.open_run(p_workspace_id, 'push', p_endpoint_id, null);
	for v_item in
		select i.value as raw, i.ordinality::int as n, autopost.post_errors(p_workspace_id, i.value) as errors
		from jsonb_array_elements(p_items) with ordinality i
		order by i.value ->> 'source_ref', case when not i.value ? 'source_ref' then autopost.receipt_hash(i.value) end, i.ordinality
	loop
		if v_item.errors <> '[]' then
			v_results[v_item.n] := jsonb_build_object('status', 'rejected', 'run_id', v_run_id, 'errors', v_item.errors);
		else
			v_items[v_item.n] := jsonb_build_object('raw', v_item.raw, 'trace_id', autopost.new_id(), 'receipt_id', autopost.new_id());
			v_results[v_item.n] := autopost.take_receipt(v_endpoint, v_item.raw, (v_items[v_item.n] ->> 'receipt_id')::uuid, v_run_id, v_now);
			if v_results[v_item.n] is null then
				v_fresh := v_fresh || v_item.n;
			end if;
		end if;
	end loop;
	select array_agg(f.n order by f.n) into v_fresh from unnest(v_fresh) f (n);
	v_taken := autopost.take_posts(p_workspace_id, p_endpoint_id, 'push',
		(select coalesce(jsonb_agg(v_items[f.n] order by f.n), '[]') from unnest(v_fresh) f (n)), v_run_id, v_now);
	for v_item in select t.value - 'deliveries' || case when t.value ->> 'status' = 'duplicate' then '{"status": "enqueued"}' else '{}' end::jsonb as answer, v_fresh[t.ordinality] as n
		from jsonb_array_elements(v_taken) with ordinality t
	loop
		v_results[v_item.n] := v_item.answer;
		update autopost.ingress_receipts r
		set answer = v_item.answer
		where r.workspace_id = p_workspace_id and r.receipt_id = (v_items[v_item.n] ->> 'receipt_id')::uuid;
	end loop;
	-- A repetition inside the array was met before the first had its answer.
	for v_item in
		select i.ordinality::int as n, r.answer
		from jsonb_array_elements(p_items) with ordinality i
		join autopost.ingress_receipts r on r.workspace_id = p_workspace_id and r.endpoint_id = p_endpoint_id
			and r.payload_hash = autopost.receipt_hash(i.value) and r.source_ref is null and r.run_id = v_run_id
		where v_results[i.ordinality] -> 'status' = '"duplicate"' and i.value ->> 'source_ref' is null
		union all
		select i.ordinality::int, r.answer
		from jsonb_array_elements(p_items) with ordinality i
		join autopost.ingress_receipts r on r.workspace_id = p_workspace_id and r.endpoint_id = p_endpoint_id
			and r.source_ref = i.value ->> 'source_ref' and r.run_id = v_run_id
		where v_results[i.ordinality] -> 'status' = '"duplicate"'
	loop
		v_results[v_item.n] := v_item.answer || '{"status": "duplicate"}';
	end loop;
	for v_item in select i.ordinality::int as n, autopost.post_warnings(p_workspace_id, i.value) as fields
		from jsonb_array_elements(p_items) with ordinality i where jsonb_typeof(i.value) = 'object'
	loop
		if v_item.fields <> '[]' then
			v_results[v_item.n] := v_results[v_item.n] || jsonb_build_object('warnings', v_item.fields);
		end if;
	end loop;
	-- A duplicate repeats the counts of the first: they are not this run's.
	perform autopost.close_run(p_workspace_id, v_run_id, autopost.answer_stats((
		select jsonb_agg(case when r.answer -> 'status' = '"duplicate"' then '{"status": "duplicate"}' else r.answer end)
		from unnest(v_results) r (answer))), to_jsonb(v_results));
	return jsonb_build_object('run_id', v_run_id, 'results', v_results);
end
$$;
